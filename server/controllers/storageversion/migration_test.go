package storageversion_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/sqlstore"
)

// Objects that are stored in another version, or without a default, are written once. Those in today's form, and those that
// were written after the migration began, are left alone.
func TestMigrate(t *testing.T) {
	c := open(t, sqlstore.Options{})
	c.put(scalers+"a", oldScaler("a"))
	c.put("/registry/autoscaling/horizontalpodautoscalers/other/b", strings.Replace(oldScaler("b"), `"default"`, `"other"`, 1))
	c.put("/registry/core/secrets/default/a", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"u"}}`)
	c.put("/registry/core/secrets/default/b", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"b","namespace":"default","uid":"u"},"type":"Opaque"}`)
	revision := c.Store.Get("/registry/core/secrets/default/b").Revision

	c.migrate("scalers", "autoscaling", "horizontalpodautoscalers")
	c.says("scalers", "Running MigrationRunning The migration is running, 2 objects verified migrated", completed)
	c.stored(scalers+"a", "autoscaling/v2")
	c.stored("/registry/autoscaling/horizontalpodautoscalers/other/b", "autoscaling/v2")
	c.migrate("secrets", "", "secrets")
	c.says("secrets", "Running MigrationRunning The migration is running, 2 objects verified migrated", completed)
	if value := string(c.Store.Get("/registry/core/secrets/default/a").Value); !strings.HasSuffix(value, `"type":"Opaque"}`) {
		t.Errorf("stored as %s", value)
	}
	if now := c.Store.Get("/registry/core/secrets/default/b").Revision; now != revision || c.writes.Load() != 3 {
		t.Errorf("%d writes; an object in today's form is of %d, before of %d", c.writes.Load(), now, revision)
	}
	c.migrate("nothing", "batch", "jobs")
	c.says("nothing", "Running MigrationRunning The migration is running", completed)
}

// A write that fails may succeed later, and what was written until then is not written again: neither by the same server
// nor by the next that runs the controllers.
func TestMigrateGoesOn(t *testing.T) {
	c := open(t, sqlstore.Options{})
	for _, name := range []string{"a", "b", "c", "d"} {
		c.put(scalers+name, oldScaler(name))
	}
	c.refuse(func(r *http.Request) (int, string) {
		if strings.HasSuffix(r.URL.Path, "/c") {
			return 503, "away"
		}
		return 0, ""
	})
	c.migrate("m", "autoscaling", "horizontalpodautoscalers")
	// The first try counts those that it has written, the second those that it finds written.
	c.says("m", "Running MigrationRunning The migration is running, 2/4 objects not yet migrated; transient error: away")
	c.stop()
	c.stored(scalers+"b", "autoscaling/v2")
	c.stored(scalers+"d", "autoscaling/v1")
	c.writes.Store(0)
	c.refuse(func(*http.Request) (int, string) { return 0, "" })
	c.run()
	c.says("m", "Running MigrationRunning The migration is running, 4 objects verified migrated", completed)
	if n := c.writes.Load(); n != 2 {
		t.Errorf("%d writes of two objects", n)
	}
}

// A failure that each try tells in other words is not written each time.
func TestMigrateTellsLittle(t *testing.T) {
	c := open(t, sqlstore.Options{})
	c.put(scalers+"a", oldScaler("a"))
	tries, enough := 0, make(chan struct{})
	c.refuse(func(*http.Request) (int, string) {
		if tries++; tries == 6 {
			close(enough)
		}
		return 503, fmt.Sprint("refusal ", tries)
	})
	c.migrate("m", "autoscaling", "horizontalpodautoscalers")
	made := c.Store.Revision()
	<-enough
	if written := c.Store.Revision() - made; written > 1 {
		t.Errorf("%d writes of six tries", written)
	}
	c.says("m", "Running MigrationRunning The migration is running, 1/1 objects not yet migrated; transient error: refusal 1")
	c.refuse(func(*http.Request) (int, string) { return 0, "" })
	c.says("m", "Running MigrationRunning The migration is running, 1 objects verified migrated", completed)
}

// An error of the way to the API is none of the object.
func TestMigrateCutOff(t *testing.T) {
	c := open(t, sqlstore.Options{})
	c.put(scalers+"a", oldScaler("a"))
	c.refuse(func(*http.Request) (int, string) { return -1, "fenced" })
	c.migrate("m", "autoscaling", "horizontalpodautoscalers")
	c.says("m", "Running MigrationRunning The migration is running, 1/1 objects not yet migrated; transient error: *")
	c.refuse(func(*http.Request) (int, string) { return 0, "" })
	c.says("m", "Running MigrationRunning The migration is running, 1 objects verified migrated", completed)
}

// An object that others write or delete meanwhile needs no migration. One that is refused ends it.
func TestMigrateRefused(t *testing.T) {
	c := open(t, sqlstore.Options{})
	for _, name := range []string{"a", "b", "c"} {
		c.put(scalers+name, oldScaler(name))
	}
	c.refuse(func(r *http.Request) (int, string) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/a"):
			c.put(scalers+"a", oldScaler("a"))
			return 409, "changed"
		case strings.HasSuffix(r.URL.Path, "/b"):
			return 403, "not allowed"
		}
		return 0, ""
	})
	c.migrate("m", "autoscaling", "horizontalpodautoscalers")
	c.says("m", "Running MigrationRunning The migration is running, 2/3 objects not yet migrated",
		"Failed StorageVersionMigrationFailed 2/3 not yet migrated. migration encountered unhandled error: not allowed")
	c.stored(scalers+"c", "autoscaling/v1")
}

// Objects that cannot be decoded stay as they are, keep no other from being migrated, and the migration does not succeed
// until they are gone.
func TestMigrateUndecodable(t *testing.T) {
	c := open(t, sqlstore.Options{})
	c.put(scalers+"a", strings.Replace(oldScaler("a"), `"maxReplicas":3`, `"maxReplicas":"many"`, 1))
	c.put(scalers+"b", strings.Replace(oldScaler("b"), "autoscaling/v1", "autoscaling/v9", 1))
	c.put(scalers+"c", oldScaler("c"))
	c.migrate("m", "autoscaling", "horizontalpodautoscalers")
	c.says("m", `Running MigrationRunning The migration is running, 2/3 objects not yet migrated; transient error: unable to decode key "/registry/autoscaling/horizontalpodautoscalers/default/a": *`)
	c.stored(scalers+"c", "autoscaling/v2")
	c.stored(scalers+"b", "autoscaling/v9")
	c.put(scalers+"a", oldScaler("a")) // by somebody who has repaired it
	if _, err := c.Store.Commit(t.Context(), c.Store.Get(scalers+"b").Ends([]byte(oldScaler("b")))); err != nil {
		t.Fatal(err)
	}
	c.says("m", "Running MigrationRunning The migration is running, 2 objects verified migrated", completed)
}

// An object whose namespace is gone cannot be written, and is not taken for one that was deleted.
func TestMigrateOrphan(t *testing.T) {
	c := open(t, sqlstore.Options{})
	c.put("/registry/autoscaling/horizontalpodautoscalers/gone/a", strings.Replace(oldScaler("a"), `"default"`, `"gone"`, 1))
	c.put("/registry/autoscaling/horizontalpodautoscalers/other/b", strings.Replace(oldScaler("b"), `"default"`, `"other"`, 1))
	c.migrate("m", "autoscaling", "horizontalpodautoscalers")
	c.says("m", `Running MigrationRunning The migration is running, 1/2 objects not yet migrated; transient error: namespaces "gone" not found`)
	c.stored("/registry/autoscaling/horizontalpodautoscalers/other/b", "autoscaling/v2")
}

// A migration that is deleted ends.
func TestMigrateDeleted(t *testing.T) {
	c := open(t, sqlstore.Options{})
	for _, name := range []string{"a", "b"} {
		c.put(scalers+name, oldScaler(name))
	}
	first, goOn := make(chan struct{}, 2), make(chan struct{})
	c.refuse(func(*http.Request) (int, string) {
		first <- struct{}{}
		<-goOn
		return 0, ""
	})
	c.migrate("m", "autoscaling", "horizontalpodautoscalers")
	<-first
	if err := c.Client.StoragemigrationV1().StorageVersionMigrations().Delete(t.Context(), "m", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The Migrator hears of it a moment later, and works off another one after this.
	close(goOn)
	c.migrate("other", "batch", "jobs")
	c.says("other", "Running MigrationRunning The migration is running", completed)
	c.stored(scalers+"a", "autoscaling/v2")
	if n := c.writes.Load(); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// A migration of a resource that is not there fails after a minute, not before: its definition may be as new.
func TestMigrateNoResource(t *testing.T) {
	c := open(t, sqlstore.Options{})
	c.migrate("new", "example.com", "widgets")
	const keys = "/registry/storagemigration.k8s.io/storageversionmigrations/"
	made := c.Store.Get(keys + "new")
	old := strings.Replace(string(made.Value), fmt.Sprintf(`"resourceVersion":"%d","name":"new"`, made.Revision), `"name":"old"`, 1)
	at := strings.Index(old, `"creationTimestamp":"`) + len(`"creationTimestamp":"`)
	c.put(keys+"old", strings.Replace(old[:at]+"2020"+old[at+4:], `"uid":"`, `"uid":"0`, 1))
	c.says("old", "Running MigrationRunning The migration is running",
		"Failed StorageVersionMigrationFailed migration encountered unhandled error: unable to obtain GVR from discovery")
	c.says("new", "Running MigrationRunning The migration is running")
}
