package policies

// UpstreamMetrics are upstream's counters and latencies of policies and of their match conditions, and those of policies and
// webhooks in files.
// They count all servers in the process.
var UpstreamMetrics = []string{
	"apiserver_validating_admission_policy_check_total", "apiserver_validating_admission_policy_check_duration_seconds",
	"apiserver_mutating_admission_policy_check_total", "apiserver_mutating_admission_policy_check_duration_seconds",
	"apiserver_admission_match_condition_evaluation_errors_total", "apiserver_admission_match_condition_evaluation_seconds",
	"apiserver_admission_match_condition_exclusions_total",
	"apiserver_manifest_admission_config_controller_automatic_reloads_total",
	"apiserver_manifest_admission_config_controller_automatic_reload_last_timestamp_seconds",
	"apiserver_manifest_admission_config_controller_last_config_info",
}
