/** `/api/devices` and `/api/pairing`: operators pair, list and revoke devices. */

import { isoTime } from '@sluice/kit'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { newPairingCode, rotateToken } from '@sluice/runtime'
import { AppError, type DeviceRow, defineRoute, ROLES, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import type { Auth } from '../auth.ts'
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
  revokeRoute(runtime, auth),
  rotateRoute(runtime, auth),
]

const initiateRoute = ({ store, clock }: Runtime, gateway: Snapshot['gateway']): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/pairing/initiate',
    summary: 'Create a one-time code that pairs another device',
    auth: 'operator',
    query: v.object({ role: v.exactOptional(v.pipe(v.picklist(ROLES), v.description('The role of the device; default: operator'))) }),
    answers: {
      200: {
        description: 'The code, to send to `POST /pair`',
        schema: v.object({ pairing_code: v.string(), expires_at: v.string(), message: v.string() }),
      },
    },
    async handle({ query: { role } }) {
      const { code, expiresAtMs } = await newPairingCode(store, gateway, clock, role)
      return { pairing_code: code, expires_at: isoTime(expiresAtMs), message: 'Send it as X-Pairing-Code to POST /pair' }
    },
  })

const listRoute = ({ store }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/devices',
    summary: 'List the paired devices',
    auth: 'operator',
    answers: { 200: { description: 'All paired devices', schema: v.object({ devices: v.array(deviceSchema), count: v.number() }) } },
    async handle() {
      const devices = await store.devices.list()
      return { devices: devices.map(shown), count: devices.length }
    },
  })

const revokeRoute = ({ store, bus, log }: Runtime, auth: Auth): Route =>
  defineRoute({
    method: 'DELETE',
    path: '/api/devices/:id',
    summary: 'Revoke a device: its token and its passkeys are refused, and its open streams end',
    auth: 'operator',
    query: v.object({
      keep_passkeys: v.exactOptional(v.pipe(flag, v.description('True: the passkeys that it registered stay valid'))),
    }),
    answers: { 200: { description: 'Revoked', schema: v.object({ device_id: v.string(), message: v.string() }) } },
    async handle({ params: { id = '' }, query: { keep_passkeys } }) {
      if (!(await store.devices.revoke(id, { keepPasskeys: keep_passkeys === 'true' }))) throw unknownDevice()
      await auth.checkStreams()
      bus.emit({ type: 'device_revoked', device_id: id })
      log.info('device revoked', { device: id })
      return { device_id: id, message: 'The device is revoked' }
    },
  })

const rotateRoute = ({ store, log }: Runtime, auth: Auth): Route =>
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
    async handle({ params: { id = '' } }) {
      const token = await rotateToken(store, id)
      if (!token) throw unknownDevice()
      await auth.checkStreams()
      log.info('device token replaced', { device: id })
      return { device_id: id, token, message: 'Send Authorization: Bearer <token> with this token from now on' }
    },
  })
