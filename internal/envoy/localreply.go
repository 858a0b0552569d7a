package envoy

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// localReplies says in plain words why no backend has answered, in place of Envoy's own text, which tells
// strangers about addresses and connections behind the proxy. Access logs have the details. Answers that have
// a content type are error pages of policies.
var localReplies = &hcmv3.LocalReplyConfig{Mappers: []*hcmv3.ResponseMapper{
	replyOf("The backend took too long.", "UT", "SI", "DT", "UMSDR"),
	replyOf("The backend has too much to do.", "UO"),
	replyOf("The backend is not available.", "UH", "UF", "UC", "UR", "LR", "LH", "URX", "DF", "UPE"),
}}

// replyOf is the text of replies with one of some flags.
func replyOf(text string, flags ...string) *hcmv3.ResponseMapper {
	return &hcmv3.ResponseMapper{
		Filter: &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_AndFilter{AndFilter: &accesslogv3.AndFilter{
			Filters: []*accesslogv3.AccessLogFilter{
				{FilterSpecifier: &accesslogv3.AccessLogFilter_ResponseFlagFilter{ResponseFlagFilter: &accesslogv3.ResponseFlagFilter{Flags: flags}}},
				{FilterSpecifier: &accesslogv3.AccessLogFilter_ExtensionFilter{ExtensionFilter: &accesslogv3.ExtensionFilter{
					Name: "envoy.access_loggers.extension_filters.cel",
					ConfigType: &accesslogv3.ExtensionFilter_TypedConfig{
						TypedConfig: constant(&celv3.ExpressionFilter{Expression: "!('content-type' in response.headers)"}),
					},
				}}},
			},
		}}},
		Body: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}},
	}
}
