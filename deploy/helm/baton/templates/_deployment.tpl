{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* The Deployment of a component: (dict "root" $ "component" "prefill"). */}}
{{- define "baton.deployment" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $own := index $values .component -}}
{{- $facts := include "baton.facts" .component | fromYaml -}}
{{- $isRouter := eq .component "router" -}}
{{- $delay := ternary (int $own.drainDelaySeconds) 0 $isRouter -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "baton.fullname" $root }}-{{ .component }}
  labels: {{- include "baton.labels" . | nindent 4 }}
spec:
  {{- if or $isRouter (eq (default dict $own.autoscaling).mode "none") }}
  replicas: {{ int $own.replicas }}
  {{- end }}
  {{- if not $isRouter }}
  minReadySeconds: 10
  progressDeadlineSeconds: {{ add (int $own.startSeconds) (int $own.drainSeconds) 300 }}
  {{- end }}
  strategy:
    type: RollingUpdate
    rollingUpdate: {{- toYaml $own.strategy | nindent 6 }}
  selector:
    matchLabels: {{- include "baton.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "baton.selector" . | nindent 8 }}
        app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
        {{- with $own.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      annotations:
        checksum/config: {{ include "baton.config" . | sha256sum }}
        {{- with $own.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      {{- include "baton.podSecurity" $root | nindent 6 }}
      terminationGracePeriodSeconds: {{ add $delay (int $own.drainSeconds) 15 }}
      {{- with $own.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $own.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $own.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $own.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $own.topologySpreadConstraints }}
      {{- $selector := dict "labelSelector" (dict "matchLabels" (include "baton.selector" . | fromYaml)) }}
      topologySpreadConstraints:
        {{- range $own.topologySpreadConstraints }}
        - {{- merge (deepCopy .) (deepCopy $selector) | toYaml | nindent 10 }}
        {{- end }}
      {{- end }}
      {{- if and (not $isRouter) (eq $values.model.source "init") }}
      initContainers:
        - name: model
          {{- include "baton.initModel" $root | nindent 10 }}
      {{- end }}
      containers:
        - name: {{ $facts.program }}
          image: {{ include "baton.image" $root }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          command: [{{ $facts.program }}]
          args: {{- include "baton.args" . | nindent 12 }}
          env:
            - name: POD_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            - name: POD_IP
              valueFrom: {fieldRef: {fieldPath: status.podIP}}
            {{- with $own.extraEnv }}{{ toYaml . | nindent 12 }}{{ end }}
          ports:
            - {name: grpc, containerPort: {{ $facts.grpc }}}
            - {name: metrics, containerPort: {{ $facts.metrics }}}
            {{- with $facts.handoff }}
            - {name: handoff, containerPort: {{ . }}}
            {{- end }}
          {{- include "baton.probes" (dict "facts" $facts "own" $own "isRouter" $isRouter) | nindent 10 }}
          resources: {{- include "baton.resources" $own | nindent 12 }}
          securityContext: {{- include "baton.containerSecurity" $root | nindent 12 }}
          volumeMounts:
            - {name: config, mountPath: /etc/baton/config, readOnly: true}
            {{- if not $isRouter }}
            - {name: secret, mountPath: /etc/baton/secret, readOnly: true}
            {{- if ne $values.model.source "bundled" }}
            - {name: model, mountPath: /models, readOnly: true}
            {{- end }}
            {{- if $own.kvTierFileSize }}
            - {name: kv-tier, mountPath: /var/cache/baton}
            {{- end }}
            {{- end }}
      volumes:
        - name: config
          configMap: {name: {{ include "baton.fullname" $root }}-{{ .component }}}
        {{- if not $isRouter }}
        - name: secret
          secret: {secretName: {{ include "baton.secretName" $root }}, defaultMode: 0440}
        {{- if $own.kvTierFileSize }}
        - name: kv-tier
          {{- /* 64Mi more than the file: the kubelet also counts the folder and the file system's own blocks. */}}
          emptyDir: {sizeLimit: {{ add (include "baton.bytes" $own.kvTierFileSize | int64) 67108864 | quote }}}
        {{- end }}
        {{- include "baton.modelVolume" $root | nindent 8 }}
        {{- end }}
{{- end }}

{{/* A worker's health does not depend on others. A router is ready with a pair, but alive without a pair. */}}
{{- define "baton.probes" -}}
startupProbe:
  {{- if .isRouter }}
  httpGet: {path: /metrics, port: metrics}
  failureThreshold: 30
  {{- else }}
  grpc: {port: {{ .facts.grpc }}, service: {{ .facts.health }}}
  failureThreshold: {{ div (add (int .own.startSeconds) 1) 2 | max 1 }}
  {{- end }}
  periodSeconds: 2
  timeoutSeconds: 2
readinessProbe:
  grpc: {port: {{ .facts.grpc }}, service: {{ .facts.health }}}
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 2
livenessProbe:
  {{- if .isRouter }}
  httpGet: {path: /metrics, port: metrics}
  {{- else }}
  grpc: {port: {{ .facts.grpc }}, service: {{ .facts.health }}}
  terminationGracePeriodSeconds: 5
  {{- end }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{- define "baton.resources" -}}
{{- $resources := deepCopy .resources -}}
{{- if gt (int .gpus) 0 -}}
{{- $resources = mergeOverwrite $resources (dict "limits" (dict "nvidia.com/gpu" (toString .gpus))) -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end }}
