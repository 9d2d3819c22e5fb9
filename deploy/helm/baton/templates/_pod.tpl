{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* Fields of every pod. */}}
{{- define "baton.podSecurity" -}}
serviceAccountName: {{ include "baton.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Fields of every container's securityContext. */}}
{{- define "baton.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The volume of the model, unless the model is part of the image. */}}
{{- define "baton.modelVolume" -}}
{{- with .Values.model -}}
{{- if eq .source "claim" -}}
- name: model
  persistentVolumeClaim: {claimName: {{ .claim.name }}, readOnly: true}
{{- else if eq .source "hostPath" -}}
- name: model
  hostPath: {path: {{ .hostPath.path }}, type: Directory}
{{- else if eq .source "image" -}}
- name: model
  image: {reference: {{ .image.reference | quote }}, pullPolicy: {{ .image.pullPolicy }}}
{{- else if eq .source "init" -}}
- name: model
  emptyDir: {sizeLimit: {{ .init.sizeLimit }}}
- name: tmp
  emptyDir: {}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The init container that writes the model. */}}
{{- define "baton.initModel" -}}
{{- with .Values.model.init -}}
image: {{ .image }}
{{- with .command }}
command: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .args }}
args: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .env }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
securityContext: {{- include "baton.containerSecurity" . | nindent 2 }}
volumeMounts:
  - {name: model, mountPath: /models}
  - {name: tmp, mountPath: /tmp}
{{- end }}
