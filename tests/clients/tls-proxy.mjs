#!/usr/bin/env node
// Node's own TLS in front of a plain server of this machine.
import { readFileSync } from 'node:fs';
import net from 'node:net';
import tls from 'node:tls';

const [cert, key, port, ca] = process.argv.slice(2);
const options = { cert: readFileSync(cert), key: readFileSync(key), ALPNProtocols: ['http/1.1'] };
if (ca) Object.assign(options, { ca: readFileSync(ca), requestCert: true, rejectUnauthorized: true });
const server = tls.createServer(options, (secure) => {
  console.log(`connection ${secure.getProtocol()} ${secure.isSessionReused() ? 'resumed' : 'full'} ${secure.servername || '-'}`);
  const plain = net.connect(Number(port), '127.0.0.1');
  secure.pipe(plain).pipe(secure);
  for (const [one, other] of [[secure, plain], [plain, secure]]) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.destroy());
  }
});
server.on('tlsClientError', (error) => console.log(`refused ${error.code}`));
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
