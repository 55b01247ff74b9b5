/** `/api/devices` and `/api/pairing`: operators pair, list and revoke devices. */

import { isoTime } from '@sluice/kit'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { newPairingCode, newToken, rotateToken } from '@sluice/runtime'
import { AppError, type DeviceRow, defineRoute, ROLES, type Route, whole } from '@sluice/sdk'
import * as v from 'valibot'
import type { Auth } from '../auth/auth.ts'
import { recordAction } from '../request/record-action.ts'
import { flag } from './query.ts'

const deviceSchema = v.object({
  id: v.string(),
  name: v.string(),
  role: v.picklist(ROLES),
  paired_at: v.string(),
  last_seen: v.nullable(v.string()),
  ip_address: v.nullable(v.string()),
  expires_at: v.nullable(v.string()),
})

const devicesSchema = v.object({ devices: v.array(deviceSchema), count: v.number() })
/** The answer of `GET /api/devices`. */
export type DevicesPage = v.InferOutput<typeof devicesSchema>

const codeSchema = v.object({ pairing_code: v.string(), expires_at: v.string(), message: v.string() })
/** The answer of `POST /api/pairing/initiate`. */
export type PairingCode = v.InferOutput<typeof codeSchema>

const newDeviceSchema = v.object({ device_id: v.string(), token: v.string(), role: v.picklist(ROLES), expires_at: v.nullable(v.string()) })
/** The answer of `POST /api/devices`. */
export type NewDeviceAnswer = v.InferOutput<typeof newDeviceSchema>

const DAY_MS = 86_400_000
/** A hundred years. A time beyond the largest date could not be formatted. */
const EXPIRY_DAYS_MAX = 36_500

const unknownDevice = (): AppError => new AppError('not_found', 'There is no such device')

const shown = ({ id, name, role, createdAtMs, lastSeenAtMs, lastAddress, expiresAtMs }: DeviceRow) => ({
  id,
  name,
  role,
  paired_at: isoTime(createdAtMs),
  last_seen: isoTime(lastSeenAtMs),
  ip_address: lastAddress,
  expires_at: isoTime(expiresAtMs),
})

export const deviceRoutes = (runtime: Runtime, { gateway }: Snapshot, auth: Auth): Route[] => [
  initiateRoute(runtime, gateway),
  listRoute(runtime),
  addRoute(runtime),
  revokeRoute(runtime, auth),
  rotateRoute(runtime, auth),
]

const initiateRoute = (runtime: Runtime, gateway: Snapshot['gateway']): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/pairing/initiate',
    summary: 'Create a one-time code that pairs another device',
    auth: 'operator',
    query: v.object({ role: v.exactOptional(v.pipe(v.picklist(ROLES), v.description('The role of the device; default: operator'))) }),
    answers: {
      200: {
        description: 'The code, to send to `POST /pair`',
        schema: codeSchema,
      },
    },
    async handle({ by, query: { role } }) {
      const { code, expiresAtMs } = await newPairingCode(runtime.store, gateway, runtime.clock, role)
      await recordAction(runtime, 'pairing_code_created', by, { role: role ?? ROLES[0] })
      return { pairing_code: code, expires_at: isoTime(expiresAtMs), message: 'Send it as X-Pairing-Code to POST /pair' }
    },
  })

const listRoute = ({ store }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/devices',
    summary: 'List the paired devices',
    auth: 'operator',
    answers: { 200: { description: 'All paired devices', schema: devicesSchema } },
    async handle() {
      const devices = await store.devices.list()
      return { devices: devices.map(shown), count: devices.length }
    },
  })

const addRoute = (runtime: Runtime): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/devices',
    summary: 'Add a device and its bearer token, without a pairing code',
    auth: 'operator',
    body: v.object({
      name: v.string(),
      role: v.optional(v.picklist(ROLES), ROLES[0]),
      expires_days: v.exactOptional(
        v.pipe(whole(1, EXPIRY_DAYS_MAX), v.description('The days after which the token is refused; default: never')),
      ),
    }),
    answers: { 200: { description: 'The token, shown only once', schema: newDeviceSchema } },
    async handle({ by, body: { name, role, expires_days } }) {
      const expiresAtMs = expires_days === undefined ? null : runtime.clock.nowMs() + expires_days * DAY_MS
      const { token, device } = await newToken(runtime.store, { name, role, expiresAtMs }, runtime.clock)
      await recordAction(runtime, 'device_added', by, { device, role })
      runtime.log.info('device added', { device, role, by })
      return { device_id: device, token, role, expires_at: isoTime(expiresAtMs) }
    },
  })

const revokeRoute = (runtime: Runtime, auth: Auth): Route =>
  defineRoute({
    method: 'DELETE',
    path: '/api/devices/:id',
    summary: 'Revoke a device: its token and its passkeys are refused, and its open streams end',
    auth: 'operator',
    query: v.object({
      keep_passkeys: v.exactOptional(v.pipe(flag, v.description('True: the passkeys that it registered stay valid'))),
    }),
    answers: { 200: { description: 'Revoked', schema: v.object({ device_id: v.string(), message: v.string() }) } },
    async handle({ by, params: { id = '' }, query: { keep_passkeys } }) {
      if (!(await runtime.store.devices.revoke(id, { keepPasskeys: keep_passkeys === 'true' }))) throw unknownDevice()
      await auth.checkStreams()
      await recordAction(runtime, 'device_revoked', by, { device: id })
      runtime.bus.emit({ type: 'device_revoked', device_id: id })
      runtime.log.info('device revoked', { device: id })
      return { device_id: id, message: 'The device is revoked' }
    },
  })

const rotateRoute = (runtime: Runtime, auth: Auth): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/devices/:id/token/rotate',
    summary: 'Replace the token of a device: the old one is refused, and its open streams end',
    auth: 'operator',
    answers: {
      200: {
        description: 'The new token, shown only once',
        schema: v.object({ device_id: v.string(), token: v.string(), message: v.string() }),
      },
    },
    async handle({ by, params: { id = '' } }) {
      const token = await rotateToken(runtime.store, id)
      if (!token) throw unknownDevice()
      await auth.checkStreams()
      await recordAction(runtime, 'token_replaced', by, { device: id })
      runtime.log.info('device token replaced', { device: id })
      return { device_id: id, token, message: 'Send Authorization: Bearer <token> with this token from now on' }
    },
  })
