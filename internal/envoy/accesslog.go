package envoy

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	fileaccesslogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
)

// accessLog returns the access log, if the operator wants one, with lines of a
// format; empty is Envoy's own for requests.
func (o Options) accessLog(format string) ([]*accesslogv3.AccessLog, error) {
	if o.AccessLog == "" {
		return nil, nil
	}
	log := &fileaccesslogv3.FileAccessLog{Path: o.AccessLog}
	if format != "" {
		log.AccessLogFormat = &fileaccesslogv3.FileAccessLog_LogFormat{LogFormat: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: inline(format)},
		}}
	}
	config, err := pack(log)
	if err != nil {
		return nil, err
	}
	return []*accesslogv3.AccessLog{{
		Name:       "envoy.access_loggers.file",
		ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
	}}, nil
}
