/**
 * The events of the gateway. After a break the connection resumes after the last event; whatever is shown is loaded again, because
 * events do not say everything that has changed meanwhile.
 */
import { signal } from '@preact/signals'
import { getOverview } from './api.ts'
import type { components } from './api-types.ts'
import { socketUrl } from './base.ts'
import { refresh } from './queries.ts'
import { session, signedOut } from './session.ts'

export type LiveEvent = components['schemas']['Event'] & {
  readonly id: string
  readonly timestamp: string
  readonly [member: string]: unknown
}
export type Gap = { readonly type: 'gap'; readonly missed: number | null }
export type Link = 'connecting' | 'live' | 'broken'

const WAIT_MS_MIN = 400
const WAIT_MS_MAX = 5000
/** A connection attempt that takes longer is given up: a network that swallows packets never answers. */
const OPEN_MS_MAX = 10_000
/** Events that arrive within this time, about two pictures, are looked at together. */
const RECEIVE_EVERY_MS = 30
/** What an event makes stale is loaded again at most this often. */
const REFRESH_EVERY_MS = 1000
/** What changed before the first connection, and after the page had asked, is seen after this time. */
const FIRST_RENEWAL_MS = 5000
const TOKEN_REVOKED = 4401

export const link = signal<Link>('connecting')
/** The time of the last break, while it lasts. */
export const brokenSince = signal<Date | undefined>(undefined)

type Listener = (event: LiveEvent | Gap) => void
const listeners = new Set<Listener>()

/** Calls `listener` with each event, until the returned function is called. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const renewals = new Set<() => void>()

/** Calls `renew` whenever events may have been missed: at each connection and each gap, until the returned function is called. */
export function onRenewal(renew: () => void): () => void {
  renewals.add(renew)
  return () => renewals.delete(renew)
}

/** What each event makes stale: the beginnings of paths. */
const STALE: readonly (readonly [prefix: string, paths: readonly string[]])[] = [
  ['turn_', ['/api/overview', '/api/sessions', '/api/deliveries', '/api/history', '/api/limits', '/api/turns']],
  ['delivery', ['/api/deliveries', '/api/overview']],
  ['human_approval', ['/api/approvals', '/api/overview']],
  ['sop_', ['/api/sops', '/api/overview']],
  ['sops_', ['/api/sops']],
  ['channel_', ['/api/channels', '/api/overview', '/api/health']],
  ['config_', ['/api/config', '/api/features', '/api/channels', '/api/overview', '/api/tools', '/api/models']],
  ['feature_', ['/api/features', '/api/overview']],
  ['device_', ['/api/devices']],
  ['people_', ['/api/people']],
  ['limit_', ['/api/limits']],
  ['operator_notice', ['/api/overview']],
  ['loop_', ['/api/limits']],
]

const EVERYTHING = '/api/'
const stale = new Set<string>()
let refreshTimer: number | undefined
function makeStale({ type }: { readonly type: string }): void {
  for (const [prefix, paths] of STALE) if (type.startsWith(prefix)) for (const path of paths) stale.add(path)
  if (stale.size > 0) refreshTimer ??= window.setTimeout(refreshStale, REFRESH_EVERY_MS)
}

function refreshStale(): void {
  window.clearTimeout(refreshTimer)
  refreshTimer = undefined
  const paths = [...stale]
  stale.clear()
  void refresh(...paths)
}

/** Loads everything again that is shown: events were missed, or happened before the page followed them. */
function renewAll(afterMs: number): void {
  const renew = () => {
    stale.add(EVERYTHING)
    refreshStale()
    for (const one of renewals) one()
  }
  if (afterMs === 0) renew()
  else setTimeout(renew, afterMs)
}

let socket: WebSocket | undefined
let lastId: string | undefined
let waitMs = WAIT_MS_MIN
let reconnectTimer: number | undefined
let wasLive = false

/** Connects, and connects again after each break, until the session has ended. */
export function connect(): void {
  window.clearTimeout(reconnectTimer)
  reconnectTimer = undefined
  if (socket || session.value !== 'in') return
  const current = new WebSocket(socketUrl('ws/events', { last_event_id: lastId }), ['sluice.v1'])
  socket = current
  const giveUp = window.setTimeout(() => current.close(), OPEN_MS_MAX)
  current.onmessage = ({ data }) => {
    received.push(data as string)
    receiveTimer ??= window.setTimeout(receiveAll, RECEIVE_EVERY_MS)
  }
  current.onopen = () => {
    window.clearTimeout(giveUp)
    waitMs = WAIT_MS_MIN
    link.value = 'live'
    brokenSince.value = undefined
    renewAll(wasLive ? 0 : FIRST_RENEWAL_MS)
    wasLive = true
  }
  current.onclose = ({ code }) => {
    window.clearTimeout(giveUp)
    if (socket !== current) return
    receiveAll()
    socket = undefined
    if (code === TOKEN_REVOKED) return signedOut()
    if (link.value !== 'broken') {
      link.value = 'broken'
      brokenSince.value = new Date()
      // A refused session closes the connection like a broken network does; this request tells them apart.
      getOverview().catch(() => undefined)
    }
    reconnectTimer = window.setTimeout(connect, waitMs * (0.75 + Math.random() / 2))
    waitMs = Math.min(waitMs * 2, WAIT_MS_MAX)
  }
}

/** Ends the connection, when the session has ended. */
export function disconnect(): void {
  const current = socket
  socket = undefined
  received = []
  lastId = undefined
  wasLive = false
  current?.close()
}

/** The events that have arrived and wait for `receiveAll`: it handles a thousand a second at once, and leaves time for a person's keys. */
let received: string[] = []
let receiveTimer: number | undefined

function receiveAll(): void {
  window.clearTimeout(receiveTimer)
  receiveTimer = undefined
  const frames = received
  received = []
  for (const data of frames) receive(data)
}

function receive(data: string): void {
  const frame = JSON.parse(data) as LiveEvent | Gap | { readonly type: 'connected' }
  if (frame.type === 'connected') return
  if (frame.type === 'gap') renewAll(0)
  else {
    lastId = (frame as LiveEvent).id
    makeStale(frame)
  }
  for (const listener of listeners) listener(frame as LiveEvent | Gap)
}

/** Connects at once when the network is back or the page is shown again. */
export function watchNetwork(): void {
  const now = () => {
    if (socket === undefined) {
      waitMs = WAIT_MS_MIN
      connect()
    }
  }
  window.addEventListener('online', now)
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && now())
}
