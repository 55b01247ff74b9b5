/** The checks of a webhook that need no request: its secret, its allowlist, and the address to register. */
import { isLoopback, isPublicAddress } from '@sluice/kit'
import type { AbsentChannel, ReadyChannel } from '@sluice/runtime/configured-channels'
import type { Webhook } from '@sluice/sdk'
import { type Finding, fail, ok, warn } from './finding.ts'
import { webhookUrl } from './sample-request.ts'

export function checkPublicUrl(publicUrl: string | undefined): Finding {
  const check = 'public URL'
  if (publicUrl === undefined) {
    const detail = 'not set, so the way from outside is not tried'
    return warn(null, { check, detail }, "add --public-url, or set it: sluice config set gateway.public_url 'https://…'")
  }
  if (isUsable(publicUrl)) return ok(null, { check, detail: publicUrl })
  return fail(
    null,
    { check, detail: `${publicUrl} is not https: platforms refuse it, and others could read the secrets on the way` },
    'use https',
  )
}

/** Returns true for https, and for http inside a private network. */
export function isUsable(publicUrl: string): boolean {
  const { protocol, hostname } = new URL(publicUrl)
  if (protocol === 'https:') return true
  const isName = !/^[\d.]+$|^\[/.test(hostname)
  if (isName) return protocol === 'http:' && /(^|\.)(localhost|local|internal|lan|home\.arpa)$/.test(hostname)
  return protocol === 'http:' && (isLoopback(hostname) || !isPublicAddress(hostname))
}

export function checkSettings({ channel, section, allowKey }: ReadyChannel, webhook: Webhook, publicUrl: string | undefined): Finding[] {
  const { name, allow, missingConfig } = channel
  return [
    ...(missingConfig === undefined
      ? []
      : [fail(name, { check: 'channel', detail: `cannot work without ${missingConfig}` }, `set it in [${section}]`)]),
    webhook.unsigned === undefined
      ? ok(name, { check: 'secret', detail: 'set: every request is verified' })
      : fail(
          name,
          { check: 'secret', detail: `${section}.${webhook.unsigned} is not set: anyone can post as the platform` },
          `sluice config set ${section}.${webhook.unsigned}`,
        ),
    checkAllowlist(name, allow, `${section}.${allowKey}`),
    checkRegistered(name, webhook, publicUrl, section),
  ]
}

function checkAllowlist(name: string, allow: readonly string[], key: string): Finding {
  const check = 'allowlist'
  if (allow.length === 0)
    return warn(name, { check, detail: `${key} is empty: every message is dropped` }, `sluice config set ${key} '["…"]'`)
  if (allow.includes('*')) return warn(name, { check, detail: `${key} has a *: anyone can use the agent` }, `name the senders in ${key}`)
  return ok(name, { check, detail: allow.length === 1 ? '1 sender may use the agent' : `${allow.length} senders may use the agent` })
}

function checkRegistered(name: string, webhook: Webhook, publicUrl: string | undefined, section: string): Finding {
  const check = 'register'
  const url = webhookUrl(publicUrl ?? '<public URL>', webhook)
  const { registered } = webhook
  if (publicUrl === undefined || registered === undefined || registered === url) return ok(name, { check, detail: url })
  return warn(
    name,
    { check, detail: `${registered} is registered, but the address of the daemon is ${url}` },
    `use the same address in both places; see [${section}]`,
  )
}

/** Reports a channel that is configured and could not be built. */
export const checkBroken = ({ name, section, reason }: AbsentChannel): Finding =>
  fail(name, { check: 'channel', detail: reason }, `see [${section}] in the configuration`)
