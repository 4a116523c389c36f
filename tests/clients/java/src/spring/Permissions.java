package spring;

import java.util.List;

import org.springframework.credhub.core.CredHubOperations;
import org.springframework.credhub.core.permission.CredHubPermissionOperations;
import org.springframework.credhub.core.permissionV2.CredHubPermissionV2Operations;
import org.springframework.credhub.support.CredentialName;
import org.springframework.credhub.support.CredentialPermission;
import org.springframework.credhub.support.SimpleCredentialName;
import org.springframework.credhub.support.permissions.Actor;
import org.springframework.credhub.support.permissions.Operation;
import org.springframework.credhub.support.permissions.Permission;
import org.springframework.credhub.support.value.ValueCredentialRequest;
import org.springframework.http.HttpStatus;

/** Permissions, through both versions of the API. */
final class Permissions {
    private final CredHubOperations operations;

    Permissions(CredHubOperations operations) {
        this.operations = operations;
    }

    void run() {
        ofOneCredential();
        byId();
    }

    /** Version 1 of the API. Spring sends its entries without a path. */
    private void ofOneCredential() {
        CredHubPermissionOperations permissions = operations.permissions();
        CredentialName name = new SimpleCredentialName("spring", "permitted");
        operations.credentials().write(ValueCredentialRequest.builder().name(name).value("x").build());
        Actor app = Actor.app("0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55");
        Actor user = Actor.user("another");
        permissions.addPermissions(name,
            Permission.builder().app(app.getPrimaryIdentifier()).operations(Operation.READ, Operation.WRITE).build(),
            Permission.builder().user(user.getPrimaryIdentifier()).operation(Operation.READ_ACL).build());
        List<Permission> added = permissions.getPermissions(name);
        Expect.isTrue(added.size() == 2, added);
        Permission ofApp = added.stream().filter(each -> each.getActor().equals(app)).findAny().orElseThrow();
        Expect.equal(List.of(Operation.READ, Operation.WRITE), ofApp.getOperations());
        permissions.deletePermission(name, app);
        List<Permission> left = permissions.getPermissions(name);
        Expect.isTrue(left.size() == 1 && left.get(0).getActor().equals(user), left);
    }

    private void byId() {
        CredHubPermissionV2Operations permissions = operations.permissionsV2();
        CredentialName path = new SimpleCredentialName("spring", "v2", "*");
        Actor client = Actor.client("another");
        Permission read = Permission.builder().client("another").operation(Operation.READ).build();
        CredentialPermission added = permissions.addPermissions(path, read);
        Expect.equal(path.getName(), added.getPath());
        Expect.equal(read, added.getPermission());
        Expect.equal(added, permissions.getPermissions(added.getId()));
        Expect.equal(added, permissions.getPermissionsByPathAndActor(path, client));
        Permission delete = Permission.builder().client("another").operation(Operation.DELETE).build();
        CredentialPermission updated = permissions.updatePermissions(added.getId(), path, delete);
        Expect.equal(added.getId(), updated.getId());
        Expect.equal(delete, updated.getPermission());
        permissions.deletePermission(added.getId());
        Expect.refused(HttpStatus.NOT_FOUND, () -> permissions.getPermissions(added.getId()));
    }
}
