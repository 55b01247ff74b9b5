/** Postfix with the milters opendkim and opendmarc, and the DNS zone that they ask, for tests. Needs root and private mounts. */
import { execFile } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { chown, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MAIL_USER } from './dovecot.ts'
import { freePort, runServer } from './programs.ts'

export interface PostfixOptions {
  readonly folder: string
  /** The folder with the Maildirs of `mailboxes`. */
  readonly mail: string
  /** Mailboxes by their addresses. */
  readonly mailboxes: Readonly<Record<string, string>>
  /** The socket of Dovecot that checks passwords. */
  readonly authSocket: string
  readonly keys: { readonly key: string; readonly cert: string }
  /** TXT records by their names. */
  readonly zone: Readonly<Record<string, string>>
  readonly authservId: string
}

export interface Postfix {
  /** `mx` takes mails from outside; `submission` has STARTTLS and `submissions` TLS, both with a login. */
  readonly ports: { readonly mx: number; readonly submission: number; readonly submissions: number }
  stop(): Promise<void>
}

/** An address of its own, at which a DNS server can have its usual port. */
const DNS_ADDRESS = '127.0.0.77'
const TXT = 16
const SERVICES = `cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
tlsmgr unix - - n 1000? 1 tlsmgr
virtual unix - n n - - virtual
smtp unix - - n - - smtp
retry unix - - n - - error
error unix - - n - - error
postlog unix-dgram n - n - 1 postlogd`
export const MESSAGE_BYTES_MAX = 1_000_000

export async function startPostfix({ folder, mail, mailboxes, authSocket, keys, zone, authservId }: PostfixOptions): Promise<Postfix> {
  const [mx, submission, submissions, dkim, dmarc] = await Promise.all(Array.from({ length: 5 }, freePort))
  if (!mx || !submission || !submissions || !dkim || !dmarc) throw new Error('no port is free')
  const path = (...parts: string[]): string => join(folder, ...parts)
  for (const name of ['queue', 'data', 'etc']) await mkdir(path(name))
  const ofPostfix = await ownerOf('postfix')
  await chown(path('data'), ofPostfix, 0)
  const domains = [...new Set(Object.keys(mailboxes).map((address) => address.split('@')[1]))].join(', ')
  const maps = Object.entries(mailboxes)
    .map(([address, name]) => `${address}=${name}/`)
    .join(', ')
  const owner = MAIL_USER?.id ?? process.getuid?.() ?? 0
  const main = `
compatibility_level = 3.6
queue_directory = ${path('queue')}
data_directory = ${path('data')}
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = ${authservId}
mydestination =
mynetworks =
alias_maps =
virtual_mailbox_domains = ${domains}
virtual_mailbox_base = ${mail}
virtual_mailbox_maps = inline:{ ${maps} }
virtual_uid_maps = static:${owner}
virtual_gid_maps = static:${owner}
virtual_minimum_uid = 1
smtpd_tls_cert_file = ${keys.cert}
smtpd_tls_key_file = ${keys.key}
smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination
smtpd_sasl_type = dovecot
smtpd_sasl_path = ${authSocket}
message_size_limit = ${MESSAGE_BYTES_MAX}
milter_default_action = tempfail
maillog_file = ${path('maillog')}
maillog_file_prefixes = ${folder}
`
  const master = [
    `127.0.0.1:${mx} inet n - n - - smtpd -o smtpd_milters=inet:127.0.0.1:${dkim},inet:127.0.0.1:${dmarc}`,
    `127.0.0.1:${submission} inet n - n - - smtpd -o smtpd_tls_security_level=encrypt -o smtpd_sasl_auth_enable=yes`,
    `127.0.0.1:${submissions} inet n - n - - smtpd -o smtpd_tls_wrappermode=yes -o smtpd_sasl_auth_enable=yes`,
    SERVICES,
  ].join('\n')
  await writeFile(path('etc/main.cf'), main)
  await writeFile(path('etc/master.cf'), `${master}\n`)
  // By default the milters trust mails of this machine.
  await writeFile(path('no-hosts'), '192.0.2.99\n')
  await writeFile(path('resolv.conf'), `nameserver ${DNS_ADDRESS}\n`)
  const common = `AuthservID ${authservId}\nBackground no\nUserID ${MAIL_USER?.name ?? 'nobody'}\n`
  await writeFile(
    path('opendkim.conf'),
    `${common}Mode v\nSocket inet:${dkim}@127.0.0.1\nNameservers ${DNS_ADDRESS}\nInternalHosts ${path('no-hosts')}\nAlwaysAddARHeader yes\n`,
  )
  // Mails of this machine would pass SPF.
  await writeFile(
    path('opendmarc.conf'),
    `${common.replace('Background no', 'Background false')}Socket inet:${dmarc}@127.0.0.1\nTrustedAuthservIDs ${authservId}\nIgnoreHosts ${path('no-hosts')}\nSPFIgnoreResults true\nRejectFailures false\n`,
  )
  const dns = await serveZone(zone)
  const inMount = (program: string): [string, ...string[]] => [
    'unshare',
    '-m',
    'sh',
    '-c',
    `mount --bind ${path('resolv.conf')} /etc/resolv.conf && exec ${program}`,
  ]
  const stops = [
    await runServer(inMount(`opendkim -f -x ${path('opendkim.conf')}`), { port: dkim }),
    await runServer(inMount(`opendmarc -f -c ${path('opendmarc.conf')}`), { port: dmarc }),
    await runServer(['postfix', '-c', path('etc'), 'start-fg'], { port: mx }),
  ]
  return {
    ports: { mx, submission, submissions },
    async stop() {
      await promisify(execFile)('postfix', ['-c', path('etc'), 'stop']).catch(() => undefined)
      for (const stop of stops.toReversed()) await stop()
      dns.close()
    },
  }
}

async function ownerOf(user: string): Promise<number> {
  const id = new RegExp(`^${user}:[^:]*:(\\d+):`, 'm').exec(await readFile('/etc/passwd', 'utf8'))?.[1]
  if (id === undefined) throw new Error(`the user ${user} does not exist`)
  return Number(id)
}

/** Answers questions for TXT records (RFC 1035), and says of all else that it does not exist. */
function serveZone(zone: Readonly<Record<string, string>>): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const labels: string[] = []
    let at = 12
    for (let length = query[at]; length; length = query[at]) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length))
      at += length + 1
    }
    const text = query.readUInt16BE(at + 1) === TXT ? zone[labels.join('.').toLowerCase()] : undefined
    const header = Buffer.from([
      query[0] ?? 0,
      query[1] ?? 0,
      0x85,
      text === undefined ? 0x83 : 0x80,
      0,
      1,
      0,
      text === undefined ? 0 : 1,
      0,
      0,
      0,
      0,
    ])
    socket.send(Buffer.concat([header, query.subarray(12, at + 5), ...(text === undefined ? [] : [record(text)])]), port, address)
  })
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.bind(53, DNS_ADDRESS, () => resolve(socket))
  })
}

function record(text: string): Buffer {
  const pieces = (text.match(/.{1,255}/gs) ?? []).flatMap((piece) => [Buffer.from([piece.length]), Buffer.from(piece)])
  const data = Buffer.concat(pieces)
  const head = Buffer.from([0xc0, 0x0c, 0, TXT, 0, 1, 0, 0, 0, 60, data.length >> 8, data.length & 0xff])
  return Buffer.concat([head, data])
}
