package etcd

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
)

func TestAuth(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	auth, ctx := pb.NewAuthClient(m.conn), bounded(t)
	status, err := auth.AuthStatus(ctx, &pb.AuthStatusRequest{})
	if err != nil || status.Enabled || status.AuthRevision != 1 || status.Header.Revision != 1 {
		t.Errorf("status: %v, %v", status, err)
	}
	if _, err := auth.AuthDisable(ctx, &pb.AuthDisableRequest{}); err != nil {
		t.Errorf("disable: %v", err)
	}
	_, err = auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: "root", Password: "x"})
	wantError(t, "authenticate", err, rpctypes.ErrGRPCAuthNotEnabled)
	users, err := auth.UserList(ctx, &pb.AuthUserListRequest{})
	if err != nil || len(users.Users) != 0 || users.Header.Revision != 1 {
		t.Errorf("users: %v, %v", users, err)
	}
	roles, err := auth.RoleList(ctx, &pb.AuthRoleListRequest{})
	if err != nil || len(roles.Roles) != 0 || roles.Header.Revision != 1 {
		t.Errorf("roles: %v, %v", roles, err)
	}
	_, err = auth.UserGet(ctx, &pb.AuthUserGetRequest{Name: "a"})
	wantError(t, "get a user", err, rpctypes.ErrGRPCUserNotFound)
	_, err = auth.RoleGet(ctx, &pb.AuthRoleGetRequest{Role: "a"})
	wantError(t, "get a role", err, rpctypes.ErrGRPCRoleNotFound)
	for name, call := range map[string]func() error{
		"AuthEnable":         func() error { _, err := auth.AuthEnable(ctx, &pb.AuthEnableRequest{}); return err },
		"UserAdd":            func() error { _, err := auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: "a"}); return err },
		"UserDelete":         func() error { _, err := auth.UserDelete(ctx, &pb.AuthUserDeleteRequest{}); return err },
		"UserChangePassword": func() error { _, err := auth.UserChangePassword(ctx, &pb.AuthUserChangePasswordRequest{}); return err },
		"UserGrantRole":      func() error { _, err := auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{}); return err },
		"UserRevokeRole":     func() error { _, err := auth.UserRevokeRole(ctx, &pb.AuthUserRevokeRoleRequest{}); return err },
		"RoleAdd":            func() error { _, err := auth.RoleAdd(ctx, &pb.AuthRoleAddRequest{}); return err },
		"RoleDelete":         func() error { _, err := auth.RoleDelete(ctx, &pb.AuthRoleDeleteRequest{}); return err },
		"RoleGrantPermission": func() error {
			_, err := auth.RoleGrantPermission(ctx, &pb.AuthRoleGrantPermissionRequest{})
			return err
		},
		"RoleRevokePermission": func() error {
			_, err := auth.RoleRevokePermission(ctx, &pb.AuthRoleRevokePermissionRequest{})
			return err
		},
	} {
		wantCode(t, name, call(), codes.Unimplemented)
	}
}
