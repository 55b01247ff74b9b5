/** What of a webhook can be checked without a request: its secret, its allowlist, the address to register. */

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
    { check, detail: `${publicUrl} is not https: providers refuse it, and secrets would be readable on the way` },
    'use https',
  )
}

/** https, or http inside a private network. */
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
      ? ok(name, { check: 'secret', detail: 'set: every request has to be proved' })
      : fail(
          name,
          { check: 'secret', detail: `${section}.${webhook.unsigned} is not set: anybody can post as the provider` },
          `sluice config set ${section}.${webhook.unsigned}`,
        ),
    checkAllowlist(name, allow, `${section}.${allowKey}`),
    checkRegistered(name, webhook, publicUrl, section),
  ]
}

function checkRegistered(name: string, webhook: Webhook, publicUrl: string | undefined, section: string): Finding {
  const check = 'register'
  const url = webhookUrl(publicUrl ?? '<public URL>', webhook)
  const { registered } = webhook
  if (publicUrl === undefined || registered === undefined || registered === url) return ok(name, { check, detail: url })
  return warn(
    name,
    { check, detail: `${registered} is registered, but the daemon is reached at ${url}` },
    `make both one; see [${section}]`,
  )
}

function checkAllowlist(name: string, allow: readonly string[], key: string): Finding {
  const check = 'allowlist'
  if (allow.length === 0)
    return warn(name, { check, detail: `${key} is empty: every message is dropped` }, `sluice config set ${key} '["…"]'`)
  if (allow.includes('*')) return warn(name, { check, detail: `${key} has a *: anybody can use the agent` }, `name who may in ${key}`)
  return ok(name, { check, detail: allow.length === 1 ? '1 sender may use the agent' : `${allow.length} senders may use the agent` })
}

export const checkBroken = ({ name, section, reason }: AbsentChannel): Finding =>
  fail(name, { check: 'channel', detail: reason }, `see [${section}] in the configuration`)
