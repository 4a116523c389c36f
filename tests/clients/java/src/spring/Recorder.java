package spring;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;

import org.springframework.credhub.support.CredentialType;
import org.springframework.credhub.support.ParametersRequest;

import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Records which operations were called. The reactive operations are called through the blocking interfaces: their methods
 * have the same names and parameters, and the recorder waits for their results.
 */
final class Recorder {
    private final Set<String> expected = new TreeSet<>();
    private final Set<String> seen = new TreeSet<>();

    /** Runs a call and prints its name. */
    <T> T call(String name, Callable<T> call) throws Exception {
        T result = call.call();
        record(name);
        return result;
    }

    /** Returns the operations of an interface, which are called on a template and recorded. */
    <T> T recording(Class<T> type, Object template) {
        for (Method method : type.getMethods()) {
            // The type of its parameter depends on the template, so the program calls it directly.
            if (!method.getName().equals("doWithRest")) {
                expected.add(name(method));
            }
        }
        Class<?>[] interfaces = {type};
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), interfaces,
            (proxy, method, arguments) -> invoke(template, method, arguments)));
    }

    /** Fails unless every operation was called. */
    void expectAll() {
        Set<String> missing = new TreeSet<>(expected);
        missing.removeAll(seen);
        if (!missing.isEmpty()) {
            throw new AssertionError("never called: " + missing);
        }
        System.out.println("called every operation of the library");
    }

    private Object invoke(Object template, Method method, Object[] arguments) throws Throwable {
        Object result;
        try {
            result = waitFor(invokeOn(template, method, arguments));
        } catch (InvocationTargetException cause) {
            throw cause.getCause();
        }
        record(name(method));
        if (method.getReturnType().getSimpleName().endsWith("Operations")) {
            return recording(method.getReturnType(), result);
        }
        return result;
    }

    private static Object invokeOn(Object template, Method method, Object[] arguments) throws ReflectiveOperationException {
        boolean isReactiveGenerate = method.getName().equals("generate")
            && template.getClass().getSimpleName().startsWith("Reactive");
        if (isReactiveGenerate) {
            // The one method with another parameter: the class of the value.
            ParametersRequest<?> request = (ParametersRequest<?>) arguments[0];
            Class<?> value = CredentialType.valueOf(request.getType().toUpperCase()).getModelClass();
            Method generate = template.getClass().getMethod("generate", ParametersRequest.class, Class.class);
            return generate.invoke(template, request, value);
        }
        return template.getClass().getMethod(method.getName(), method.getParameterTypes()).invoke(template, arguments);
    }

    private static Object waitFor(Object result) {
        if (result instanceof Mono<?> one) {
            return one.block();
        }
        if (result instanceof Flux<?> many) {
            return many.collectList().block();
        }
        return result;
    }

    private void record(String name) {
        seen.add(name);
        System.out.println("ok " + name);
    }

    private static String name(Method method) {
        String[] parameters = Arrays.stream(method.getParameterTypes()).map(Class::getSimpleName).toArray(String[]::new);
        String interfaceName = method.getDeclaringClass().getSimpleName();
        return interfaceName + "." + method.getName() + "(" + String.join(", ", parameters) + ")";
    }
}
