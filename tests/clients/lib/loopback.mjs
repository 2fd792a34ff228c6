// Loaded before a server that would listen on every interface: it listens on this machine only.
import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  const everywhere = /^\d+$/.test(String(port)) && typeof rest[0] !== 'string';
  return listen.call(this, port, ...(everywhere ? ['127.0.0.1', ...rest] : rest));
};
