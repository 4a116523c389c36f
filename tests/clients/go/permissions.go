package main

import (
	"errors"
	"slices"

	"code.cloudfoundry.org/credhub-cli/credhub"
	library "code.cloudfoundry.org/credhub-cli/credhub/permissions"
)

// actor is granted permissions, which are then deleted.
const actor = "uaa-client:another"

// permissionsV2 adds, reads, changes and deletes a permission.
func permissionsV2(calls *calls) {
	client := calls.client
	added := call(calls, "AddPermission", func() (*library.Permission, error) {
		return client.AddPermission("/go/*", actor, []string{"read", "write"})
	})
	expect(added.UUID != "" && added.Path == "/go/*" && added.Actor == actor, "%+v", added)
	again := refuse(calls, "AddPermission", func() (*library.Permission, error) {
		return client.AddPermission("/go/*", actor, []string{"read"})
	})
	var refused *credhub.Error
	expect(errors.As(again, &refused) && refused.Name != "", "%v", again)
	byID := call(calls, "GetPermissionByUUID", func() (*library.Permission, error) {
		return client.GetPermissionByUUID(added.UUID)
	})
	expect(slices.Equal(byID.Operations, []string{"read", "write"}), "%+v", byID)
	found := call(calls, "GetPermissionByPathActor", func() (*library.Permission, error) {
		return client.GetPermissionByPathActor("/go/*", actor)
	})
	expect(found.UUID == added.UUID, "%+v", found)
	updated := call(calls, "UpdatePermission", func() (*library.Permission, error) {
		return client.UpdatePermission(added.UUID, "/go/*", actor, []string{"delete"})
	})
	expect(slices.Equal(updated.Operations, []string{"delete"}), "%+v", updated)
	deleted := call(calls, "DeletePermission", func() (*library.Permission, error) {
		return client.DeletePermission(added.UUID)
	})
	expect(deleted.UUID == added.UUID, "%+v", deleted)
	gone := refuse(calls, "GetPermissionByPathActor", func() (*library.Permission, error) {
		return client.GetPermissionByPathActor("/go/*", actor)
	})
	var notFound *credhub.NotFoundError
	expect(errors.As(gone, &notFound), "%T: %v", gone, gone)
}

// permissionsV1 adds a permission as the library does for servers before 2.0: the entry has no path.
func permissionsV1(calls *calls, old *credhub.CredHub) {
	call(calls, "AddPermission before 2.0", func() (*library.Permission, error) {
		return old.AddPermission("/go/json", actor, []string{"read"})
	})
	listed := call(calls, "GetPermissions", func() ([]library.V1_Permission, error) {
		return calls.client.GetPermissions("/go/json")
	})
	isListed := slices.ContainsFunc(listed, func(permission library.V1_Permission) bool {
		return permission.Actor == actor && slices.Equal(permission.Operations, []string{"read"})
	})
	expect(isListed, "%+v", listed)
}
