/** Dovecot with one folder of mailboxes on loopback, for tests. */
import { chmod, chown, mkdir, rename, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort, runServer } from './programs.ts'

export const DOVECOT_PASSWORD = 'dovecot-password-01'

export interface Dovecot {
  readonly ports: { readonly plain: number; readonly tls: number }
  /** The socket at which other servers ask whether a password is right. */
  readonly authSocket: string
  /** The Maildir of a mailbox, such as `bot` for bot@example.net. */
  maildir(name: string): string
  start(): Promise<void>
  stop(): Promise<void>
}

/** Dovecot refuses to read mails as root. */
export const MAIL_USER = process.getuid?.() === 0 ? { name: 'nobody', group: 'nogroup', login: 'www-data', id: 65_534 } : undefined

export interface DovecotOptions {
  readonly program: { readonly path: string; readonly env: Readonly<Record<string, string>>; readonly root: string }
  readonly folder: string
  readonly mailboxes: readonly string[]
  readonly keys: { readonly key: string; readonly cert: string }
  /** The URL that tells whether an access token is valid. */
  readonly introspection?: string
}

export async function prepareDovecot({ program, folder, mailboxes, keys, introspection }: DovecotOptions): Promise<Dovecot> {
  const maildir = (name: string): string => join(folder, 'mail', name)
  await chmod(folder, 0o755)
  for (const path of [
    join(folder, 'mail'),
    ...mailboxes.flatMap((name) => ['', 'new', 'cur', 'tmp'].map((part) => join(maildir(name), part))),
  ]) {
    await mkdir(path, { recursive: true })
    if (MAIL_USER) await chown(path, MAIL_USER.id, MAIL_USER.id)
  }
  const own = userInfo().username
  const { name, group, login } = MAIL_USER ?? { name: own, group: own, login: own }
  const ports = { plain: await freePort(), tls: await freePort() }
  const oauth = introspection ? `passdb {\n driver = oauth2\n mechanisms = xoauth2\n args = ${folder}/oauth2\n}` : ''
  const config = `
base_dir = ${folder}/run
log_path = ${folder}/log
libexec_dir = ${join(program.root, 'usr/lib/dovecot')}
mail_plugin_dir = ${join(program.root, 'usr/lib/dovecot/modules')}
protocols = imap
listen = 127.0.0.1
default_internal_user = ${name}
default_internal_group = ${group}
default_login_user = ${login}
first_valid_uid = 1
mail_location = maildir:${folder}/mail/%n
ssl = yes
ssl_cert = <${keys.cert}
ssl_key = <${keys.key}
auth_mechanisms = plain login${introspection ? ' xoauth2' : ''}
disable_plaintext_auth = no
auth_failure_delay = 0
passdb {
  driver = static
  mechanisms = plain login
  args = password=${DOVECOT_PASSWORD}
}
${oauth}
userdb {
  driver = static
  args = uid=${name} gid=${group} home=${folder}/mail/%n allow_all_users=yes
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${ports.plain}
  }
  inet_listener imaps {
    port = ${ports.tls}
    ssl = yes
  }
}
service auth {
  unix_listener auth-smtp {
    mode = 0666
  }
}
service anvil {
  chroot =
}
`
  await writeFile(join(folder, 'dovecot.conf'), config)
  const asked = `introspection_url = ${introspection}\nintrospection_mode = get\nusername_attribute = email\n`
  if (introspection) await writeFile(join(folder, 'oauth2'), `${asked}active_attribute = active\nactive_value = true\n`)
  let stop: (() => Promise<void>) | undefined
  return {
    ports,
    authSocket: join(folder, 'run/auth-smtp'),
    maildir,
    async start() {
      stop = await runServer([program.path, '-F', '-c', join(folder, 'dovecot.conf')], { env: program.env, port: ports.plain })
    },
    async stop() {
      await stop?.()
      stop = undefined
    },
  }
}

let files = 0

/** Delivers a mail as a delivery agent does. Returns its file. */
export async function putMail(maildir: string, mail: string | Buffer): Promise<string> {
  const name = `${Date.now()}.M${++files}P${process.pid}.test`
  const temporary = join(maildir, 'tmp', name)
  await writeFile(temporary, mail)
  if (MAIL_USER) await chown(temporary, MAIL_USER.id, MAIL_USER.id)
  await rename(temporary, join(maildir, 'new', name))
  return name
}
