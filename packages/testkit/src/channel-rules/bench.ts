/** The test bench of the channel rules: builds the channel under test and its requests. */
import type { Channel, Host, Parts, Raw, Webhook } from '@sluice/sdk'
import * as v from 'valibot'
import { expect } from 'vitest'
import type { ChannelFixture, ChannelSubject, Proof } from '../channel-subject.ts'
import { type TestHost, testHost } from '../host.ts'

/** The channel under test and helpers for its rules. */
export interface Bench {
  readonly subject: ChannelSubject
  /** Builds the feature; `allow` replaces the allowlist of the subject's configuration. */
  build(host: Host, allow?: readonly string[]): Parts
  /** Builds the feature and returns its only channel; throws if it does not build exactly one. */
  channel(host?: Host, allow?: readonly string[]): Channel
  webhook(host?: Host): Webhook
  /** Builds the channel from a configuration without its webhook secret. */
  unsigned(host?: Host): Channel
  /** Makes an incoming request. Without `proof`, the subject proves the body at the time of the host's clock. */
  raw(host: TestHost, content: Pick<ChannelFixture, 'body' | 'headers'> | Uint8Array, proof?: Proof): Raw
  /** Throws if a secret of the subject appears in the host's log or in `shown`. */
  expectNoSecret(host: TestHost, ...shown: readonly unknown[]): void
}

/** Creates the bench of a subject. */
export function createBench(subject: ChannelSubject): Bench {
  const { feature, config, allowKey, secrets } = subject
  const build = (host: Host, allow?: readonly string[]) => {
    const section = allow === undefined ? config : { ...config, [allowKey]: allow }
    return feature.build(host, feature.section ? v.parse(feature.section.schema, section) : section)
  }
  const only = ({ channels = [] }: Parts): Channel => {
    const [first, ...more] = channels
    if (!first || more.length > 0) throw new Error(`${feature.id} must build exactly one channel; it builds ${channels.length}`)
    return first
  }
  const channel = (host: Host = testHost(), allow?: readonly string[]): Channel => only(build(host, allow))
  return {
    subject,
    build,
    channel,
    webhook(host) {
      const { webhook } = channel(host)
      if (!webhook) throw new Error(`${feature.id} has no webhook`)
      return webhook
    },
    unsigned(host = testHost()) {
      const { [subject.webhook?.secretKey ?? '']: _, ...rest } = config as Record<string, unknown>
      return only(feature.build(host, feature.section ? v.parse(feature.section.schema, rest) : rest))
    },
    raw(host, content, proof) {
      const [bytes, headers] = content instanceof Uint8Array ? [content, {}] : [new TextEncoder().encode(content.body), content.headers]
      const nowMs = host.clock.nowMs()
      const given = proof ?? subject.webhook?.prove(bytes, nowMs) ?? {}
      const body = given.body ? withMembers(bytes, given.body, Object.keys(subject.webhook?.prove(bytes, nowMs).body ?? {})) : bytes
      const query = new URLSearchParams(given.query)
      const all = Object.entries({ ...headers, ...given.headers }).map(([name, value]) => [name.toLowerCase(), value])
      return { headers: Object.fromEntries(all), url: new URL(`http://localhost/webhook?${query}`), body, receivedAtMs: nowMs }
    },
    expectNoSecret(host, ...shown) {
      const text = JSON.stringify([host.logs, shown].map(plain))
      for (const secret of secrets) expect(text).not.toContain(secret)
    },
  }
}

/** Returns a JSON object with the members at these dotted paths, and without those at the other `paths`. Other bytes stay as they are. */
function withMembers(bytes: Uint8Array, members: Readonly<Record<string, string>>, paths: readonly string[]): Uint8Array {
  const body = objectOf(bytes)
  if (!body) return bytes
  for (const path of paths) {
    const names = path.split('.')
    const last = names.pop() ?? ''
    let holder = body
    for (const name of names) {
      holder[name] ??= {}
      holder = holder[name] as Record<string, unknown>
    }
    if (members[path] === undefined) delete holder[last]
    else holder[last] = members[path]
  }
  return new TextEncoder().encode(JSON.stringify(body))
}

function objectOf(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** Turns errors into plain objects with everything they print, because `JSON.stringify` would drop it. */
const plain = (value: unknown): unknown => {
  if (value instanceof Error) return { ...value, message: value.message, stack: value.stack, cause: plain(value.cause) }
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]))
}
