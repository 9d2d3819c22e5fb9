{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* Refuses values that fit the schema and yet cannot work. Every refusal names the value. */}}
{{- define "baton.check" -}}
{{- include "baton.checkModel" . -}}
{{- range $role := splitList " " (include "baton.pools" .) -}}
{{- include "baton.checkTier" (dict "role" $role "pool" (index $.Values $role)) -}}
{{- include "baton.checkMemory" (dict "root" $ "role" $role "pool" (index $.Values $role)) -}}
{{- with (index $.Values $role).autoscaling -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail (printf "%s.autoscaling.minReplicas is %d and maxReplicas %d: expected at most as many" $role (int .minReplicas) (int .maxReplicas)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $component := list "router" "prefill" "decode" "both" -}}
{{- include "baton.checkOptions" (dict "component" $component "values" (index $.Values $component)) -}}
{{- end -}}
{{- if and .Values.monitoring.podMonitor .Values.monitoring.serviceMonitor -}}
{{- fail "monitoring.podMonitor and monitoring.serviceMonitor are both true: Prometheus would scrape each pod twice. Choose one" -}}
{{- end -}}
{{- if and .Values.grpcRoute.enabled (not .Values.grpcRoute.parentRefs) -}}
{{- fail "grpcRoute.parentRefs is empty: expected the Gateway that the route belongs to, such as [{name: public}]" -}}
{{- end -}}
{{- end }}

{{- define "baton.checkPools" -}}
{{- if eq (int .Values.both.replicas) 0 -}}
{{- range $role := list "prefill" "decode" -}}
{{- if eq (int (index $.Values $role).replicas) 0 -}}
{{- fail (printf "%s.replicas is 0: without %s workers no request is served. Set %s.replicas, or both.replicas for workers that compute prompts and decode" $role $role $role) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "baton.checkModel" -}}
{{- $needed := dict "claim" "name" "hostPath" "path" "image" "reference" "init" "image" -}}
{{- with .Values.model -}}
{{- if hasKey $needed .source -}}
{{- $field := get $needed .source -}}
{{- if not (get (get . .source) $field) -}}
{{- fail (printf "model.%s.%s is empty: model.source is %s" .source $field .source) -}}
{{- end -}}
{{- else if .path -}}
{{- fail (printf "model.path is %s, but model.source is bundled: a path needs the source claim, hostPath, image or init" .path) -}}
{{- end -}}
{{- if and (eq .source "image") (semverCompare "<1.31.0-0" $.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "model.source is image: image volumes need Kubernetes 1.31 or newer, this cluster is %s" $.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Only workers that compute prompts use a KV tier. */}}
{{- define "baton.checkTier" -}}
{{- if and .pool.kvTierFileSize (eq .role "decode") -}}
{{- fail "decode.kvTierFileSize is set: decode workers compute no prompts; set prefill.kvTierFileSize or both.kvTierFileSize" -}}
{{- end -}}
{{- end }}

{{/* A worker whose memory does not fit its limit refuses to start, or is killed while it serves. */}}
{{- define "baton.checkMemory" -}}
{{- $limit := (default dict .pool.resources.limits).memory -}}
{{- if and $limit (has .pool.device (list "cpu" "replay")) -}}
{{- $needed := add (include "baton.bytes" .pool.kvMemory) (include "baton.bytes" .root.Values.model.memory) -}}
{{- if lt (include "baton.bytes" $limit | int64) $needed -}}
{{- fail (printf "%s.resources.limits.memory is %v, less than %s.kvMemory (%s) and model.memory (%s) together: raise the limit, or lower kvMemory" .role $limit .role .pool.kvMemory .root.Values.model.memory) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* An option that the chart sets may not come a second time from `options` or `extraArgs`. */}}
{{- define "baton.checkOptions" -}}
{{- $set := dict
  "listen" "" "metrics-listen" "" "workers" "" "worker-id" "" "router-id" "" "role" ""
  "handoff-listen" "" "handoff-advertise" "" "handoff-host" "" "config" "" "pages" "KVMEMORY"
  "secret-file" "secret" "model" "model" "model-name" "model.name" "quantize" "model.quantize" "kv-dtype" "model.kvDtype"
  "device" "DEVICE" "threads" "THREADS" "kv-memory" "KVMEMORY" "kv-tier-file" "KVTIER" "kv-tier-file-size" "KVTIER" "max-sequences" "SEQUENCES" "drain-timeout" "DRAIN" "drain-delay" "DELAY"
  "log" "logLevel" "log.level" "logLevel" "log.format" "" -}}
{{- $values := dict "DEVICE" "device" "THREADS" "threads" "KVMEMORY" "kvMemory" "KVTIER" "kvTierFileSize" "SEQUENCES" "maxSequences" "DRAIN" "drainSeconds"
  "DELAY" "drainDelaySeconds" -}}
{{- $given := keys .values.options -}}
{{- range .values.extraArgs -}}
{{- if hasPrefix "--" . -}}{{- $given = append $given (trimPrefix "--" . | splitList "=" | first) -}}{{- end -}}
{{- end -}}
{{- $component := .component -}}
{{- range $given -}}
{{- if hasKey $set . -}}
{{- $value := get $set . -}}
{{- if hasKey $values $value -}}{{- $value = printf "%s.%s" $component (get $values $value) -}}{{- end -}}
{{- fail (printf "%s.options or extraArgs has %s, which the chart sets%s" $component . (ternary (printf " from the value %s" $value) "" (ne $value ""))) -}}
{{- end -}}
{{- end -}}
{{- end }}
