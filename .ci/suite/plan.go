package main

import (
	"cmp"
	"slices"
	"strings"
)

// longest are the packages that take the longest, the longest first. They are tested first, so that at the end no
// processor waits for one of them.
var longest = []string{
	"server", "sqlstore", "cmd/plinth", "dialects/logtest", "server/encryption", "server/etcd", "server/rest", "server/servertest", "server/etcd/etcdtest",
	"bench/torture", "server/upstream", "server/admission", "sqlstore/scrub", "server/authn", "server/openapi", "bench", "sqlstore/backup", "server/tokens",
}

// long are packages that come next. What is not here takes a few seconds.
var long = []string{
	"server/admission/policies", "server/controllers", "sqlstore/transfer", "server/cluster", ".ci/suite", "dialects/logtest/dbserver", "dialects/sqlite",
	"server/lister", "bench/etcdbench", "server/files",
}

// unwatched is what the race detector need not watch, which makes code several times as slow and is one more program to link.
type unwatched struct {
	dir   string   // all that it contains, if tests is empty
	tests []string // names that no other package has
	why   string
}

// ofProcesses is the reason for tests that watch processes. They wait for most of their time, so others run beside them.
const ofProcesses = "its tests watch processes"

var withoutRace = []unwatched{
	{"cmd/plinth", nil, ofProcesses},
	{"cmd/plinth/ui", nil, ofProcesses},
	{"bench/torture", nil, ofProcesses},
	{"sqlstore/backup", nil, "it has no goroutines"},
	{"bench", []string{"TestRunQuick"}, "what is measured is one request after the other, and TestSuite is watched"},
	{"dialects/logtest", []string{
		"TestRandomPast", "TestKeepAll", "TestPageBytes", "TestOriginSize", "TestBloat", "TestRawReads", "TestLargeTransaction",
	}, "one change comes after the other"},
	{"sqlstore", []string{"TestIndexesEqualScans", "TestWatchersWhere"}, "one step comes after the other, chance chooses which"},
	{"sqlstore/transfer", []string{"TestCopyModel"}, "one step comes after the other, chance chooses which"},
	{"server", []string{
		"TestAuditRecorded", "TestAuthorizationRecorded", "TestFairnessRecorded", "TestIdentitiesRecorded", "TestImpersonationRecorded",
		"TestRecordedLeases", "TestRoutesOfIdentities", "TestRuntimeConfigEverywhere", "TestWays", "TestPrebuiltDocuments",
		"TestRightsOfRoutes", "TestConventions", "TestDeprecatedRequestsAreCounted", "TestControllersRights", "TestControllersWriteLittle",
		"TestDiscoveryRecorded", "TestEmulationRecorded", "TestRuntimeConfigStarts", "TestRuntimeConfigKeepsObjects", "TestOldDatabase",
		"TestEmptyDatabase", "TestCopiedDatabase",
		// TestHostileStalls, TestHostileResets, TestStopWithConnections and TestStopWithMuteClient are watched.
		"TestHostileSeats", "TestHostileBodies", "TestHostileConnections", "TestDatabaseDiskFull", "TestDeafClientsRunOutOfTime", "TestStopWithDeafClients", "TestStopWithDeafWebSocket",
		"TestAdvertised", "TestAdvertisedLoopback", "TestAPIServicesAtStart", "TestAuditExec", "TestAuditExtension", "TestAuditFullDisk", "TestAuditID",
		"TestAuditLimits", "TestAuditPanic", "TestAuditPatches", "TestAuditRecordedWebhooks", "TestAuditRemoved", "TestAuditSecrets", "TestAuditTokens",
		"TestAuditWithoutPolicy", "TestAuthorityOfNobodyElse", "TestBackupFails", "TestBackupInterval", "TestBadCertificate", "TestCertificatesLogged",
		"TestComponents", "TestComponentStatuses", "TestComponentStatusesInProtobuf", "TestConfigErrors", "TestDataDir", "TestDataDirModes",
		"TestDatabaseComesLater", "TestDatabaseInMemory", "TestDatabaseNeverComes", "TestDescribed", "TestDisguises", "TestExec",
		"TestExtensionServer", "TestExtensionServerConditions", "TestExtensionServerNamespaces", "TestFairnessClassified", "TestFairnessMetrics", "TestHalfCopiedDatabase",
		"TestHostileHeaders", "TestImpersonatingNobody", "TestInProcessUser", "TestKubeletAsks", "TestKubeletFiles", "TestKubeletTrust",
		"TestLeaseCommitDelay", "TestMovedDatabase", "TestNoComponents", "TestOpenFails", "TestOrigin", "TestOwnCertificates", "TestPeersOfOtherAuthorities",
		"TestProxies", "TestRestoreDrill", "TestRestoredBackup", "TestScrubInterval", "TestServicesFull", "TestServicesOfTwoFamilies", "TestSignerRules", "TestSimulatedNodes",
		"TestStatusRights", "TestStorageVersionMigration", "TestTerminal", "TestTooLarge", "TestTooLargeKeepsTheConnection",
		"TestUpdateThatCreates",
	}, "one request comes after the other, or hundreds of one kind do"},
	{"server/rest", []string{
		"TestListMemory", "TestListBroken", "TestListGathered", "TestListGatheredEncodings", "TestManyWatchersSeeTheModel",
		"TestBadConversionWebhooks", "TestPatches", "TestPatchBounds", "TestSelectionsWithIndexes",
		"TestApplyModel", "TestFewErrors", "TestLongErrors", "TestRemovedVersions", "TestCustomResourcesRecorded", "TestConventionsOfKinds",
		"TestFieldValidation", "TestDeletionAnswers", "TestAllocations", "TestDefaultsThatExplode", "TestTooManyTerms", "TestCostlyDefinitions",
		"FuzzApply", "FuzzPatch", "TestApplyUnchanged", "TestBinding", "TestCascadingDeletion", "TestCBORIsJSON", "TestCBORLongList",
		"TestConversionChangesLabels", "TestCreate", "TestDeletion", "TestDeletionOfNamespaces", "TestDeepDefinitionsInCBOR",
		"TestDeepObjects", "TestDeleteCollection", "TestDeleteOptions", "TestDryRun", "TestEviction", "TestFieldValidationDirectives",
		"TestFieldValidationIsTruncated", "TestFieldValidationOfProtobuf", "TestGracePeriods", "TestListText", "TestManagersInSQL", "TestPagesAreConsistent",
		"TestPodSubresources", "TestRemovedScales", "TestResourceVersions", "TestRollback", "TestSubresources", "TestTypedClientCBOR", "TestUpdate",
	}, "one request comes after the other"},
	{"server/openapi", []string{
		"TestV2", "TestV2IsWhole", "TestV2Protobuf", "TestDefinitionsBesideBuiltinKinds", "TestPublishedDefinitions", "TestPublishedSchemas",
		"TestIfNoneMatch", "TestEveryKindValidates", "TestRemovedKindsValidate", "TestJoinedChunks", "TestPrebuiltIsServed",
		"TestEmulatedRelease", "TestMediaTypes", "TestProtobuf", "TestHashesOfDocuments", "TestAcceptEncoding", "TestHeaders", "TestDescriptionsOfLists",
	}, "one document is read after the other"},
	{"server/admission", []string{"TestRecordedPolicies", "TestRecordedPlugins"}, "one request comes after the other"},
	{"server/admission/policies", []string{"TestCostly", "TestMany"}, "one expression is evaluated after the other"},
	{"server/encryption", []string{
		"TestNothingPlain", "TestUnsafeDelete", "TestStartsWithoutKeyOfConfigMaps", "TestStartsWithoutAnyKey", "TestCopy", "TestNoConfig",
		"TestReads", "TestResources", "TestRotation", "TestSwappedValues", "TestUnreadableEvent", "TestUnreadableWebhooks",
	}, "one request comes after the other"},
	{"server/etcd", []string{
		"TestWatchUnread", "TestTransportUnfinished", "TestSnapshotUnread", "TestWatchSilentClient", "TestLargeRanges", "TestWatchManyIdle", "TestRangeStreamIsRange",
		"TestKVAnswersAsEtcd", "TestWatchHostile", "TestHashKV", "TestLongestKeys", "TestLeaseGrant", "TestOverlapsModel",
	}, "much data, or many streams, of what the watched tests have little, or one request comes after the other"},
	{"server/etcd/etcdtest", []string{
		"TestUpstreamStorage", "TestUpstreamStorageAlone", "TestLikeEtcd",
	}, "upstream's tests end after seconds, which the detector uses up; random requests come one after the other"},
	{"server/deciding", nil, "one request comes after the other"},
	{"server/discovery", nil, "one request comes after the other"},
	{"server/history", nil, "one request comes after the other"},
	{"server/manifest", nil, "one document is read after the other"},
	{"server/response", nil, "one answer is written after the other"},
	{"server/status", nil, "it has no goroutines"},
	{"server/kind/builtin", nil, "one conversion comes after the other; TestServicesAtOnce of server is watched"},
	{"server/kind/custom", nil, "one validation comes after the other"},
	{"server/servertest", []string{"TestHundred"}, "TestParallel is watched"},
	{"server/upstream", []string{
		"TestExportLargeLate", "TestImportLargeLate", "TestFollowKine", "TestImportKine", "TestImport", "TestExportBack", "TestImportEncryption",
	}, "one page comes after the other, or what is followed is another program than in TestFollowEtcd"},
}

// slow are tests that test-quick leaves out. Each takes longer than all tests of most packages do; together they take
// four fifths of the time.
var slow = []string{
	// cmd/plinth
	"TestScripts", "TestEnvtest", "TestCommandScripts", "TestEtcdImportKilled", "TestClients", "TestCopyOnline", "TestDocumentsArePlayed",
	"TestDatabaseFaults", "TestDatabaseFrozen", "TestDatabaseRestart", "TestOperator", "TestReplicasStopped", "TestStopDuringStart",
	"TestDatabaseSetBack", "TestDatabaseFull", "TestDatabaseTimeout", "TestExportCommand", "TestImportKilled", "TestMemoryAfterBurst",
	"TestImportCommand", "TestNotify", "TestPrometheusCheck", "TestPrometheusFiles", "TestLogOfANormalDay", "TestBench", "TestBenchEtcd",
	"TestReflectorExpired", "TestTorture", "TestQuota", "TestMemoryBound", "TestBenchScale", "TestBenchAgainst", "TestReplicasRoll",
	"TestReplicasUpgrade", "TestReplicasExpire", "TestCopyOnlineKilled", "TestModel",
	"TestBenchIdle", "TestEtcdBadFlags", "TestSecretsStayInside", "TestImportBad", "TestReplicasWatch", "TestVerifyVersions", "TestDocumentedSQL",
	"TestKubernetesManifests", "TestSecondSignal", "TestBenchEtcdUnreachable", "TestExportBad", "TestStatusFaults", "TestCertsCopy", "TestLogOfAnOutage", "TestBenchTorture",
	"TestKwokctl", "TestDropInFailures", "TestUsageErrors", "TestExportLive", "TestCopyCutOff", "TestBlameModel", "TestImportFollow", "TestEtcdTLS", "TestJenvtest", "TestMemoryOfContainer",
	// cmd/plinth/ui
	"TestPictures", "TestWorkInBrowser", "TestNowInBrowser", "TestServerInBrowser", "TestHostileObjects", "TestListResumed", "TestUndoByKeys",
	"TestTimelineLive", "TestListInBrowser",
	// bench, bench/torture
	"TestRunQuick", "TestPlanted",
	// dialects/logtest
	"TestRandomPast", "TestKeepAll", "TestBloat", "TestOpenEnds", "TestSize", "TestPostgresTLS", "TestRawReads", "TestOriginSize",
	"TestRandomOperations", "TestPageBytes", "TestLargeTransaction",
	"TestHostOfOldTimeline", "TestRestartUnderLoad", "TestMySQLTLS",
	// sqlstore and what is below
	"TestFrozenIdle", "TestFrozenPostgres", "TestFrozenMariaDB", "TestDatabaseHangs", "TestSetBackModel", "TestDamage", "TestEveryHarm",
	"TestCopyOnlineCompacted", "TestRestore", "TestRestartIsNoSetBack",
	"TestPagesPostgres", "TestPagesMariaDB", "TestIndexesEqualScans", "TestCopyModel", "TestPowerCut", "TestLostHead", "TestLagOfRows", "TestWatchRange", "TestWatchersWhere",
	// server and what is below
	"TestHostileSeats", "TestHostileStalls", "TestHostileBodies", "TestHostileConnections", "TestOwnCertificates", "TestEscalationRaces",
	"TestWatchHostile", "TestLeaseKeepAliveHostile", "TestWatchThenWrite", "TestKVAnswersAsEtcd", "TestControllersWriteLittle", "TestDatabaseDiskFull", "TestRuntimeConfigStarts", "TestScrubInterval",
	"TestRestoreDrill", "TestListGathered", "TestListGatheredEncodings", "TestConcurrentPatches", "TestKMS", "TestUnwellKMSWithKey", "TestFollowKine", "TestEtcdTargetInterrupted",
	"TestUpstreamStorage", "TestUpstreamStorageAlone", "TestRobust", "TestLikeEtcd", "TestWatchUnread", "TestWebhooks",
	"TestConfigurationOfOtherReplica", "TestHundred", "TestDocumentsFollowDefinitions", "TestRuntimeConfigKeepsObjects",
	"TestRotation", "TestRewrite", "TestUnwellKMSOfReplicas", "TestOtherModule", "TestEscalationAcrossReplicas", "TestGiveBackOnce",
	"TestRoutesOfIdentities", "TestRangeStreamIsRange", "TestOldDatabase", "TestRecordedPolicies", "TestListMemory", "TestImportKine",
	"TestDeafClientsRunOutOfTime", "TestStopWithDeafWebSocket", "TestStopWithDeafClients", "TestAuditRecorded", "TestCertificatesRenewed", "TestPeers", "TestFollowAway",
	"TestFollowQuietAway", "TestFollowQuietEtcd", "TestStartsWithoutKeyOfConfigMaps", "TestClientCAReplaced", "TestIssuerComesLater", "TestConversionWebhookHangs",
	"TestListBroken", "TestFewErrors", "TestSelectionsWithIndexes", "TestFollowUnreadable", "TestManyErrors", "TestFirstLease", "TestEtcdIsLikeEtcd", "TestCostly",
	"TestLeaseSurvivesRestart", "TestElectionLost",
	"TestCertain", "TestComponentStartsAgain", "TestComponentsElected", "TestManyWatchersSeeTheModel", "TestWatchSlow", "TestNothingPlain", "TestWebhookDelay", "TestRestoredBackup", "TestEtcdClientsAreLikeEtcds",
}

// heavy are packages that test-quick leaves out too, unless PKG or CHANGED chooses packages: linking their few tests with
// Kubernetes' packages takes several times as long as the tests do.
var heavy = []string{
	"server/controllers/storageversion", "server/deciding", "server/discovery", "server/kind/builtin/allocate", "server/manifest", "server/peers",
	"server/response", "server/servingcert", "server/simulation", "server/status", "server/storageadapter", "server/turns",
}

// ofServers are the subtests on databases that are servers. The quick tests run on SQLite alone, except those whose
// subject the databases are.
const ofServers = "/^(postgres|mariadb)$"

// quick returns the commands that test packages quickly, as plan does; everywhere is whether nobody chose packages.
func quick(args, packages []string, everywhere bool) (lanes [][][]string) {
	var onAll, onSQLite []string
	for _, p := range longestFirst(packages) {
		if everywhere && slices.Contains(heavy, short(p)) {
			continue
		}
		if strings.HasPrefix(short(p)+"/", "dialects/") {
			onAll = append(onAll, p)
		} else {
			onSQLite = append(onSQLite, p)
		}
	}
	if len(onSQLite) > 0 {
		lanes = append(lanes, [][]string{slices.Concat(args, []string{"-skip", named(slow) + "|" + ofServers}, onSQLite)})
	}
	if len(onAll) > 0 {
		lanes = append(lanes, [][]string{slices.Concat(args, []string{"-skip", named(slow)}, onAll)})
	}
	return lanes
}

// named is a pattern of go test for tests of these names.
func named(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

// plan returns the commands that test packages: lanes, which run side by side, of commands that run one after the other.
// They add to args, which run go test; chosen is whether args choose tests by their names already, so that commands can
// not. With race, the first lane has the race detector; the second one the tests of processes and then the packages that the detector
// need not watch at all; and the third one what it need not watch of the first one's packages: behind another lane, server's part of that,
// which waits for most of its time, would run alone for minutes. All end at about the same time with packages that have the detector
// and do not take long: their tests wait for links.
func plan(args, packages []string, race, chosen bool) (lanes [][][]string) {
	if !race {
		return [][][]string{{slices.Concat(args, longestFirst(packages))}}
	}
	var watched, parted, others, processes []string
	var tests []string
	for _, p := range longestFirst(packages) {
		u := unwatchedOf(p)
		switch {
		case u == nil, u.tests != nil && chosen:
			watched = append(watched, p)
		case u.why == ofProcesses:
			processes = append(processes, p)
		case u.tests == nil:
			others = append(others, p)
		default:
			watched, parted = append(watched, p), append(parted, p)
			tests = append(tests, u.tests...)
		}
	}
	var first, second, third [][]string
	add := func(to *[][]string, packages []string, flags ...string) {
		if len(packages) > 0 {
			*to = append(*to, slices.Concat(args, flags, packages))
		}
	}
	pattern, withRace := named(tests), []string{"-race"}
	if len(parted) > 0 {
		withRace = append(withRace, "-skip", pattern)
	}
	add(&second, processes)
	add(&second, others)
	add(&third, parted, "-run", pattern)
	withOthers := []*[][]string{&first}
	for _, lane := range []*[][]string{&second, &third} {
		if len(*lane) > 0 {
			withOthers = append(withOthers, lane)
		}
	}
	for i, share := range deal(watched, len(withOthers)) {
		add(withOthers[i], share, withRace...)
	}
	return slices.DeleteFunc([][][]string{first, second, third}, func(lane [][]string) bool { return lane == nil })
}

// deal divides packages, the longest of which come first. The first share has all that take the longest.
func deal(packages []string, among int) [][]string {
	shares := make([][]string, among)
	next := 0
	for _, p := range packages {
		if slices.Contains(longest, short(p)) {
			shares[0] = append(shares[0], p)
			continue
		}
		shares[next] = append(shares[next], p)
		next = (next + 1) % among
	}
	return shares
}

func unwatchedOf(importPath string) *unwatched {
	dir := short(importPath)
	for i, u := range withoutRace {
		if dir == u.dir || u.tests == nil && strings.HasPrefix(dir, u.dir+"/") {
			return &withoutRace[i]
		}
	}
	return nil
}

func longestFirst(packages []string) []string {
	order := slices.Concat(longest, long)
	place := func(p string) int {
		if i := slices.Index(order, short(p)); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedStableFunc(slices.Values(packages), func(a, b string) int { return cmp.Compare(place(a), place(b)) })
}

// importPaths returns the packages that patterns match. One that cannot be loaded is left for go test to complain of.
func importPaths(patterns []string) ([]string, error) {
	out, err := output(".", "go", append([]string{"list", "-e"}, patterns...)...)
	return strings.Fields(out), err
}
