//! Files that vanish, fill the disk or lie: the database, the audit trail, exports and the registry.
