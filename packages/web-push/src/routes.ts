/** The routes of notifications: a browser turns its own on and off, and operators see all of them. */
import { AppError, defineRoute, type Host, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import type { Outgoing } from './outgoing.ts'
import { browserSubscriptionSchema, type Subscription, type Subscriptions } from './subscriptions.ts'
import type { VapidKey } from './vapid.ts'
import { testNotification } from './waiting-work.ts'
import { WORKER_SCRIPT } from './worker-script.ts'

const CALLS_PER_MINUTE = 20

export interface PushRoutesOptions {
  readonly host: Host
  readonly subscriptions: Subscriptions
  readonly outgoing: Pick<Outgoing, 'sendNow'>
  key(): Promise<VapidKey>
}

const browserSchema = v.object({
  device: v.string(),
  name: v.string(),
  role: v.string(),
  service: v.pipe(v.string(), v.description('The host of the push service of the browser')),
  since: v.string(),
})

export const shownBrowser = ({ device: { id, name, role }, endpoint, createdAtMs }: Subscription): v.InferOutput<typeof browserSchema> => ({
  device: id,
  name,
  role,
  service: endpoint.host,
  since: new Date(createdAtMs).toISOString(),
})

export const noSubscription = (device: string): AppError =>
  new AppError('not_found', `The device ${device} has no notifications. \`sluice web-push list\` lists those that have.`)

/** A device can be revoked, which ends its notifications. */
function deviceOf(device: string | null): string {
  if (device === null) throw new AppError('conflict', 'Notifications need a paired browser: [gateway] require_pairing is false here.')
  return device
}

export const pushRoutes = (options: PushRoutesOptions): Route[] => [workerRoute, ...ownRoutes(options), ...operatorRoutes(options)]

const workerRoute = defineRoute({
  method: 'GET',
  path: '/push-worker.js',
  summary: 'The service worker of the page, which shows notifications',
  auth: 'open',
  mediaType: 'text/javascript',
  answers: { 200: { description: 'The script' } },
  handle: () =>
    new Response(WORKER_SCRIPT, {
      headers: {
        'content-type': 'text/javascript; charset=utf-8',
        'cache-control': 'no-cache',
        'content-security-policy': "default-src 'none'",
      },
    }),
})

const ownRoutes = ({ host, subscriptions, outgoing, key }: PushRoutesOptions): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/web-push',
    summary: 'The key for subscriptions, and whether the calling device has notifications',
    auth: 'client',
    answers: {
      200: {
        description: 'The state',
        schema: v.object({
          public_key: v.pipe(v.string(), v.description('The VAPID key, in base64url, for `PushManager.subscribe`')),
          endpoint: v.pipe(v.nullable(v.string()), v.description('The address of the subscription of this device; null without one')),
        }),
      },
    },
    async handle({ device }) {
      const own = device === null ? undefined : await subscriptions.of(device)
      return { public_key: (await key()).publicKey, endpoint: own?.endpoint.href ?? null }
    },
  }),
  defineRoute({
    method: 'PUT',
    path: '/api/web-push',
    summary: 'Turn notifications on for the calling device, with the subscription of its browser',
    auth: 'client',
    callsPerMinute: CALLS_PER_MINUTE,
    body: browserSubscriptionSchema,
    answers: { 200: { description: 'Turned on', schema: v.object({ on: v.literal(true) }) } },
    async handle({ device, body }) {
      const displaced = await subscriptions.set(deviceOf(device), body, host.clock.nowMs())
      if (displaced) host.log.warn('notifications of a browser turned off: an operator took its place', { device: displaced.device.id })
      return { on: true }
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/web-push',
    summary: 'Turn notifications off for the calling device',
    auth: 'client',
    answers: { 200: { description: 'Turned off', schema: v.object({ on: v.literal(false) }) } },
    async handle({ device }) {
      await subscriptions.remove(deviceOf(device))
      return { on: false }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/web-push/test',
    summary: 'Send a notification to the calling device',
    auth: 'client',
    callsPerMinute: CALLS_PER_MINUTE,
    answers: { 200: { description: 'The push service has taken it', schema: v.object({ sent: v.literal(true) }) } },
    async handle({ device }) {
      const own = deviceOf(device)
      const outcome = await outgoing.sendNow(own, testNotification(host.clock.nowMs()))
      if (outcome?.kind === 'sent') return { sent: true }
      if (outcome && outcome.kind !== 'gone') throw new AppError('upstream', `The notification was not sent: ${outcome.reason}`)
      throw noSubscription(own)
    },
  }),
]

const operatorRoutes = ({ host, subscriptions }: PushRoutesOptions): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/web-push/browsers',
    summary: 'The devices that have notifications',
    auth: 'operator',
    answers: { 200: { description: 'The devices', schema: v.object({ browsers: v.array(browserSchema) }) } },
    handle: async () => ({ browsers: (await subscriptions.list()).map(shownBrowser) }),
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/web-push/browsers/:device',
    summary: 'Turn notifications off for a device',
    auth: 'operator',
    answers: { 200: { description: 'Turned off', schema: v.object({ removed: v.string() }) } },
    async handle({ by, params: { device = '' } }) {
      await removeBrowser(host, subscriptions, { device, by })
      return { removed: device }
    },
  }),
]

/** Throws `not_found` for a device without notifications. */
export async function removeBrowser(
  host: Pick<Host, 'service'>,
  subscriptions: Subscriptions,
  { device, by }: { readonly device: string; readonly by: string },
): Promise<void> {
  if (!(await subscriptions.remove(device))) throw noSubscription(device)
  await host.service('audit')?.({ kind: 'notifications_removed', by, detail: { device } })
}
