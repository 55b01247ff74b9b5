/** The notifications of this browser: the worker that shows them, and the subscription at the push service of the browser. */
import { answered, api } from './api.ts'
import { BASE } from './base.ts'

const WORKER = new URL('push-worker.js', BASE).href
/** The one policy that the page allows itself: it makes the address of the worker, and no other. */
const POLICY = 'sluice-worker'

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string }
}

const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes }
const policy = trustedTypes?.createPolicy(POLICY, {
  createScriptURL(url) {
    if (url !== WORKER) throw new TypeError('The page runs no other worker')
    return url
  },
})

/** Whether the browser can have notifications here: it needs TLS or localhost, and iOS needs the page on the home screen. */
export const canNotify = (): boolean =>
  isSecureContext && 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window

const subscriptionOf = async (registration?: ServiceWorkerRegistration): Promise<PushSubscription | null> =>
  (await registration?.pushManager.getSubscription()) ?? null

/** Resolves to the address of the subscription of this browser; null without one. */
export async function ownEndpoint(): Promise<string | null> {
  return (await subscriptionOf(await navigator.serviceWorker.getRegistration(BASE.href)))?.endpoint ?? null
}

/** Registers the worker, once in a browser, and resolves when it runs. */
export async function registerWorker(): Promise<ServiceWorkerRegistration> {
  await navigator.serviceWorker.register(policy?.createScriptURL(WORKER) ?? WORKER, { scope: BASE.pathname })
  return navigator.serviceWorker.ready
}

/** Asks the person for the permission, subscribes, and tells the gateway. */
export async function turnOn(publicKey: string): Promise<void> {
  if ((await Notification.requestPermission()) !== 'granted') throw new Error('The browser does not allow notifications of this page.')
  const registration = await registerWorker()
  // A subscription of an earlier key cannot be used any more.
  await (await subscriptionOf(registration))?.unsubscribe()
  const subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey }).catch(() => {
    throw new Error('The browser got no subscription from its push service. It may be turned off in the browser, or not be reachable.')
  })
  const { endpoint, keys: { p256dh = '', auth = '' } = {} } = subscription.toJSON()
  await answered(api.PUT('/api/web-push', { body: { endpoint: endpoint ?? '', keys: { p256dh, auth } } }))
}

export async function turnOff(): Promise<void> {
  await answered(api.DELETE('/api/web-push'))
  await (await subscriptionOf(await navigator.serviceWorker.getRegistration(BASE.href)))?.unsubscribe()
}
