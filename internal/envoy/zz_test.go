package envoy
import ("testing";"crypto/x509";"crypto/x509/pkix";"encoding/pem";"crypto/ecdsa";"crypto/rsa";"crypto/rand";"math/big";"encoding/asn1"
"github.com/gatehouse-dev/gatehouse/internal/ir")
func TestZZ(t *testing.T){
 e:=newKey(t,"P-256").(*ecdsa.PrivateKey); r:=newKey(t,"RSA-2048").(*rsa.PrivateKey)
 sec1,_:=x509.MarshalECPrivateKey(e); p8e,_:=x509.MarshalPKCS8PrivateKey(e)
 p1:=x509.MarshalPKCS1PrivateKey(r); p8r,_:=x509.MarshalPKCS8PrivateKey(r)
 ce:=secret(t,"x",e,nil).Certificate; cr:=secret(t,"x",r,nil).Certificate
 for _,l:=range []string{"PRIVATE KEY","RSA PRIVATE KEY","EC PRIVATE KEY"}{
  for n,d:=range map[string][]byte{"sec1":sec1,"p8e":p8e,"p1":p1,"p8r":p8r}{
   c:=ce; if n=="p1"||n=="p8r"{c=cr}
   k:=string(pem.EncodeToMemory(&pem.Block{Type:l,Bytes:d}))
   t.Logf("XX %s in %s: %v",n,l,serving(&ir.Secret{Name:"x",Certificate:c,Key:ir.Sensitive(k)}).validate(t)==nil)
  }
 }
 for _,bits:=range []uint{4096,8192,8200,16384,16392}{
  n:=new(big.Int).Lsh(big.NewInt(1),bits-1); n.Add(n,big.NewInt(12345)); n.SetBit(n,0,1)
  tm:=&x509.Certificate{SerialNumber:big.NewInt(1),Subject:pkix.Name{CommonName:"x"}}
  der,err:=x509.CreateCertificate(rand.Reader,tm,tm,&rsa.PublicKey{N:n,E:65537},e)
  if err!=nil{t.Log(err);continue}
  c:=string(pem.EncodeToMemory(&pem.Block{Type:"CERTIFICATE",Bytes:der}))
  k:=string(pem.EncodeToMemory(&pem.Block{Type:"PRIVATE KEY",Bytes:p8r}))
  t.Logf("XX %d %v",bits,serving(&ir.Secret{Name:"x",Certificate:c,Key:ir.Sensitive(k)}).validate(t))
 }
 z:=secret(t,"x",e,func(c *x509.Certificate){c.ExtraExtensions=[]pkix.Extension{{Id:asn1.ObjectIdentifier{2,5,29,15},Critical:true,Value:[]byte{3,1,0}}}})
 t.Logf("XX zero usage %v",serving(z).validate(t))
 z=secret(t,"x",e,func(c *x509.Certificate){c.Subject=pkix.Name{};c.EmailAddresses=[]string{"a@b"}; c.DNSNames=[]string{"a.b"}})
 t.Logf("XX no subject %v",serving(z).validate(t))
}
