{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* The options of a program, which are the same on all its pods: (dict "root" $ "component" "prefill"). */}}
{{- define "baton.config" -}}
{{- $values := .root.Values -}}
{{- $own := index $values .component -}}
{{- $facts := include "baton.facts" .component | fromYaml -}}
{{- $config := dict
  "listen" (include "baton.listen" (dict "root" .root "port" $facts.grpc))
  "metrics-listen" (include "baton.listen" (dict "root" .root "port" $facts.metrics))
  "drain-timeout" (printf "%ds" (int $own.drainSeconds))
  "log" (dict "level" $values.logLevel "format" "json") -}}
{{- if eq .component "router" -}}
{{- $_ := set $config "drain-delay" (printf "%ds" (int $own.drainDelaySeconds)) -}}
{{- else -}}
{{- $config = merge $config (dict
  "model" (include "baton.modelPath" .root)
  "device" $own.device
  "threads" (include "baton.threads" $own | int)
  "kv-memory" (printf "%sB" $own.kvMemory)
  "kv-dtype" $values.model.kvDtype
  "quantize" $values.model.quantize
  "secret-file" (printf "/etc/baton/secret/%s" $values.secret.key)) -}}
{{- if $own.kvTierFileSize -}}
{{- $_ := set $config "kv-tier-file" "/var/cache/baton/kv-tier" -}}
{{- $_ := set $config "kv-tier-file-size" (printf "%sB" $own.kvTierFileSize) -}}
{{- end -}}
{{- if $own.maxSequences -}}{{- $_ := set $config "max-sequences" (int $own.maxSequences) -}}{{- end -}}
{{- if $values.model.name -}}{{- $_ := set $config "model-name" $values.model.name -}}{{- end -}}
{{- end -}}
{{- if $facts.handoff -}}
{{- $_ := set $config "handoff-listen" (include "baton.listen" (dict "root" .root "port" $facts.handoff)) -}}
{{- end -}}
{{- range $name, $value := $own.options -}}
{{- $_ := set $config $name (ternary (int64 $value) $value (kindIs "float64" $value)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{/* The arguments of a program: what depends on the pod, and what the pool's operator adds. */}}
{{- define "baton.args" -}}
{{- $values := .root.Values -}}
{{- $facts := include "baton.facts" .component | fromYaml -}}
- --config=/etc/baton/config/config.yaml
{{- if eq .component "router" }}
- --router-id=$(POD_NAME)
{{- $workers := list -}}
{{- range $role := splitList " " (include "baton.pools" .root) -}}
{{- $port := (include "baton.facts" $role | fromYaml).grpc | int -}}
{{- $workers = append $workers (printf "dns:///%s-%s:%d" (include "baton.fullname" $.root) $role $port) -}}
{{- end }}
- --workers={{ join "," $workers }}
{{- else }}
- --worker-id=$(POD_NAME)
{{- if eq .component "both" }}
- --role=both
{{- end }}
- --handoff-host=$(POD_IP)
{{- if $facts.handoff }}
- --handoff-advertise={{ ternary "[$(POD_IP)]" "$(POD_IP)" (eq $values.ipFamily "IPv6") }}:{{ $facts.handoff }}
{{- end }}
{{- end }}
{{- with (index $values .component).extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}
