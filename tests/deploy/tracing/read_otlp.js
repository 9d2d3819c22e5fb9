// SPDX-License-Identifier: Apache-2.0
// Prints an OTLP trace request, protobuf on the standard input, as JSON. OTLP_READER names the folder with
// OpenTelemetry's generated code.
const path = require('path');
const folder = process.env.OTLP_READER;
const root = require(path.join(folder, 'root.js'));
const request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const bytes = require('fs').readFileSync(0);
const message = request.decode(bytes);
const error = request.verify(message);
if (error) throw new Error(error);
console.log(JSON.stringify(request.toObject(message, {bytes: String, longs: String, enums: String})));
