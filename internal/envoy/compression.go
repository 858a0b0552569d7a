package envoy

import (
	"net/http"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	brotliv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/brotli/compressor/v3"
	gzipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/compressor/v3"
	zstdv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/zstd/compressor/v3"
	compressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/compressor/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// compressionSlot compresses answers: one filter an algorithm, of which the client's Accept-Encoding
// chooses.
var compressionSlot = trafficSlot{
	name:    "gatehouse.compression",
	setting: func(t *ir.Traffic) any { return t.Compression },
	filters: []trafficFilter{
		compressor(ir.Brotli, func(level uint32) message { return &brotliv3.Brotli{Quality: wrapperspb.UInt32(level)} }),
		compressor(ir.Zstd, func(level uint32) message { return &zstdv3.Zstd{CompressionLevel: wrapperspb.UInt32(level)} }),
		compressor(ir.Gzip, func(level uint32) message {
			return &gzipv3.Gzip{CompressionLevel: gzipv3.Gzip_CompressionLevel(level)} //nolint:gosec // 1 to 9
		}),
	},
}

// compressor is the filter of an algorithm, with the library that does it.
func compressor(of ir.CompressionType, library func(level uint32) message) trafficFilter {
	name := string(of)
	return trafficFilter{
		name: name,
		make: func(t *ir.Traffic) (message, error) {
			if t.Compression == nil {
				return nil, nil //nolint:nilnil // there is nothing to compress
			}
			i := slices.IndexFunc(t.Compression.Algorithms, func(a ir.CompressionAlgorithm) bool { return a.Type == of })
			if i < 0 {
				return nil, nil //nolint:nilnil // it isn't used
			}
			config, err := pack(library(t.Compression.Algorithms[i].Level))
			return &compressorv3.Compressor{
				CompressorLibrary: &corev3.TypedExtensionConfig{Name: name, TypedConfig: config},
				ResponseDirectionConfig: &compressorv3.Compressor_ResponseDirectionConfig{
					CommonConfig: &compressorv3.Compressor_CommonDirectionConfig{
						MinContentLength:   wrapperspb.UInt32(t.Compression.MinSize),
						ContentTypeMatcher: contentTypes(t.Compression.ContentTypes),
					},
					// Who has an answer by its strong tag has other bytes than these; for
					// conditional requests the weak one is as good.
					WeakenEtagOnCompress: true,
					// Of a range of bytes the client knows where it stands.
					UncompressibleResponseCodes: []uint32{http.StatusPartialContent},
				},
				ChooseFirst: i == 0,
			}, err
		},
	}
}

// contentTypes are matchers of types.
func contentTypes(types []string) []*matcherv3.StringMatcher {
	out := make([]*matcherv3.StringMatcher, len(types))
	for i, t := range types {
		if main, ok := strings.CutSuffix(t, "*"); ok {
			out[i] = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: main}, IgnoreCase: true}
		} else {
			out[i] = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: t}, IgnoreCase: true}
		}
	}
	return out
}
