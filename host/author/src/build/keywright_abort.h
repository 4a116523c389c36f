// Prints the file and line of a call of abort(). Written by `keywright plugin build`.

#pragma once

#include <stdlib.h>
#include <unistd.h>

#define KEYWRIGHT_TEXT_OF(line) #line
#define KEYWRIGHT_TEXT(line) KEYWRIGHT_TEXT_OF(line)
#define KEYWRIGHT_ABORTED "abort() called at " __FILE__ ":" KEYWRIGHT_TEXT(__LINE__) "\n"
#define abort() ((void)write(2, KEYWRIGHT_ABORTED, sizeof KEYWRIGHT_ABORTED - 1), (abort)())
