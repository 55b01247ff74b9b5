/** Rules for building a channel: its name, routes, limits, allowlist and life cycle. */
import { rowOfFeature } from '@sluice/sdk'
import { expect } from 'vitest'
import { testHost, throwingHost } from '../host.ts'
import type { Rules } from '../rules.ts'
import type { Bench } from './bench.ts'

export function buildRules({ subject: { feature, config, allowKey }, build, channel, expectNoSecret }: Bench): Rules {
  return {
    'name and section equal the catalogue row': () => {
      const row = rowOfFeature(feature)
      const { moreSections = [] } = row && 'moreSections' in row ? row : {}
      const path = feature.section?.path ?? ''
      // A further section of a feature has a channel with its own name.
      const isFurther = moreSections.includes(path)
      expect(channel().name).toBe(
        isFurther ? path.slice(path.lastIndexOf('.') + 1) : feature.id.replace(/^(?:channel|x)-/, '').replaceAll('-', '_'),
      )
      if (row && !isFurther) expect(feature.section?.path).toBe(row.section)
    },

    'routes equal the catalogue row': () => {
      const row = rowOfFeature(feature)
      const { webhook } = channel()
      const { routes = [], sockets = [] } = build(testHost())
      const hooks = webhook ? [...(webhook.handshake ? [`GET ${webhook.path}`] : []), `POST ${webhook.path}`] : []
      const others = [...routes.map(({ method, path }) => `${method} ${path}`), ...sockets.map(({ path }) => `GET ${path}`)]
      const all = [...hooks, ...others]
      // A feature with several sections lists the routes of all, and its channels may also listen.
      if (row && 'moreSections' in row) expect(row.routes ?? []).toEqual(expect.arrayContaining(all))
      else if (row) expect(all).toEqual(row.routes ?? [])
      if (webhook) expect(webhook.bodyBytesMax ?? 65_536).toBeGreaterThan(0)
    },

    'build does no I/O': () => {
      build(throwingHost())
    },

    'limits are positive integers': () => {
      const { text, replyWindow } = channel().limits
      const { seconds, count = 1 } = (typeof replyWindow === 'function' ? replyWindow({ to: 'anyone' }) : replyWindow) ?? { seconds: 1 }
      for (const limit of [text, seconds, count]) expect(Number.isSafeInteger(limit) && limit > 0).toBe(true)
    },

    'the allowlist equals the configured one, even when empty': () => {
      const configured = (config as Readonly<Record<string, readonly string[]>>)[allowKey] ?? ['*']
      for (const allow of [[], ['*'], configured]) expect(channel(testHost(), allow).allow).toEqual(allow)
    },

    'health makes no calls': () => {
      const host = { ...throwingHost(), clock: testHost().clock }
      expect(['ok', 'connecting', 'down', undefined]).toContain(channel(host).health?.().state)
    },

    'close may be called twice': async () => {
      const host = testHost()
      const parts = build(host)
      await parts.close?.()
      await parts.close?.()
      expectNoSecret(host)
    },
  }
}
