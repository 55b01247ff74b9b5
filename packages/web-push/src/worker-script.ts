/** The source of the service worker of the page. It shows notifications and opens their places; it sees no request of the page. */

export const WORKER_SCRIPT = `
'use strict'

self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))

const shownOf = (data) => {
  try {
    return data.json()
  } catch {
    return {}
  }
}

self.addEventListener('push', (event) => {
  const { title = 'Sluice', body = 'Something waits for you.', place = '#/', tag = 'sluice' } = shownOf(event.data)
  event.waitUntil(self.registration.showNotification(title, { body, tag, icon: 'assets/icon-1.png', data: { place } }))
})

// An open page decides itself, because what a person has typed there may not be saved.
const openPlace = async ({ title, data }) => {
  const place = String(data?.place).startsWith('#/') ? data.place : '#/'
  const { scope } = self.registration
  const pages = (await self.clients.matchAll({ type: 'window' })).filter(({ url }) => new URL(url).pathname === new URL(scope).pathname)
  const page = pages.find(({ focused }) => focused) ?? pages[0]
  if (!page) return void (await self.clients.openWindow(new URL(place, scope).href).catch(() => null))
  page.postMessage({ title, place })
  await page.focus().catch(() => null)
}

self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(openPlace(event.notification))
})
`
