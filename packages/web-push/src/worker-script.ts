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

const openPlace = async (place) => {
  const url = new URL(String(place).startsWith('#/') ? place : '#/', self.registration.scope).href
  const pages = await self.clients.matchAll({ type: 'window' })
  const page = pages.find(({ focused }) => focused) ?? pages[0]
  if (!page) return void (await self.clients.openWindow(url))
  const moved = await page.navigate(url).catch(() => null)
  await (moved ? moved.focus() : self.clients.openWindow(url)).catch(() => null)
}

self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(openPlace(event.notification.data?.place))
})
`
