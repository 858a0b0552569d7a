package ir

import (
	"encoding/json"
	"slices"
	"unique"
)

// MaxClusters is how many clusters a backend may say something of.
const MaxClusters = 16

// ClusterShare is what the endpoints of a cluster get of a backend's requests.
type ClusterShare struct {
	Name string `json:"name"`
	// Weight is the share among clusters of the same priority; 0 is none at all.
	Weight uint32 `json:"weight"`
	// Priority is 0 for clusters that get all requests while they have endpoints that are well, and then 1, 2 ….
	Priority uint32 `json:"priority,omitempty"`
}

// Clusters says which clusters' endpoints of a backend get its requests; zero if all are alike. Two compare as what they
// say.
type Clusters struct {
	handle unique.Handle[[MaxClusters]ClusterShare]
}

// ClustersOf says so of no more than MaxClusters clusters.
func ClustersOf(shares []ClusterShare) Clusters {
	var list [MaxClusters]ClusterShare
	copy(list[:], shares)
	return Clusters{unique.Make(list)}
}

// IsZero reports whether all clusters are alike.
func (c Clusters) IsZero() bool { return c == Clusters{} }

// Shares are what is said of clusters, each with a name.
func (c Clusters) Shares() []ClusterShare {
	if c.IsZero() {
		return nil
	}
	list := c.handle.Value()
	return slices.DeleteFunc(list[:], func(s ClusterShare) bool { return s.Name == "" })
}

// Of is the share of a cluster. One of which nothing is said comes after all others.
func (c Clusters) Of(cluster string) ClusterShare {
	last := ClusterShare{Name: cluster, Weight: 1}
	for _, s := range c.Shares() {
		if s.Name == cluster {
			return s
		}
		last.Priority = max(last.Priority, s.Priority+1)
	}
	return last
}

// MarshalJSON writes the shares.
func (c Clusters) MarshalJSON() ([]byte, error) { return json.Marshal(c.Shares()) }

// UnmarshalJSON reads them.
func (c *Clusters) UnmarshalJSON(text []byte) error {
	var shares []ClusterShare
	if err := json.Unmarshal(text, &shares); err != nil || len(shares) == 0 {
		return err
	}
	*c = ClustersOf(shares)
	return nil
}
