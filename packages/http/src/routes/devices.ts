/** `/api/devices` and `/api/pairing`: who may call, made and unmade by those who may. */

import { isoTime } from '@sluice/kit'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { newPairingCode, rotateToken } from '@sluice/runtime'
import { AppError, type DeviceRow, defineRoute, ROLES, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import type { Auth } from '../auth.ts'

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

export function deviceRoutes({ store, clock, bus, log }: Runtime, { gateway }: Snapshot, auth: Auth): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/pairing/initiate',
      summary: 'A one-time code for another device',
      auth: 'operator',
      query: v.object({ role: v.exactOptional(v.pipe(v.picklist(ROLES), v.description('What the device may do; default: operator'))) }),
      answers: {
        200: {
          description: 'The code, to be sent to `POST /pair`',
          schema: v.object({ pairing_code: v.string(), expires_at: v.string(), message: v.string() }),
        },
      },
      async handle({ query: { role } }) {
        const { code, expiresAtMs } = await newPairingCode(store, gateway, clock, role)
        return { pairing_code: code, expires_at: isoTime(expiresAtMs), message: 'Send it as X-Pairing-Code to POST /pair' }
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/devices',
      summary: 'The paired devices',
      auth: 'operator',
      answers: { 200: { description: 'All of them', schema: v.object({ devices: v.array(deviceSchema), count: v.number() }) } },
      async handle() {
        const devices = await store.devices.list()
        return { devices: devices.map(shown), count: devices.length }
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/devices/:id',
      summary: 'Revoke a device: its token and its passkeys are refused and its open streams end',
      auth: 'operator',
      query: v.object({
        keep_passkeys: v.exactOptional(v.pipe(v.picklist(['true', 'false']), v.description('True: the passkeys it registered stay good'))),
      }),
      answers: { 200: { description: 'Revoked', schema: v.object({ device_id: v.string(), message: v.string() }) } },
      async handle({ params: { id = '' }, query: { keep_passkeys } }) {
        if (!(await store.devices.revoke(id, { keepPasskeys: keep_passkeys === 'true' }))) throw unknownDevice()
        await auth.checkStreams()
        bus.emit({ type: 'device_revoked', device_id: id })
        log.info('a device was revoked', { device: id })
        return { device_id: id, message: 'The device is revoked' }
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/devices/:id/token/rotate',
      summary: 'Replace the token of a device: the one it had is refused and its open streams end',
      auth: 'operator',
      answers: {
        200: {
          description: 'The new token, shown this once',
          schema: v.object({ device_id: v.string(), token: v.string(), message: v.string() }),
        },
      },
      async handle({ params: { id = '' } }) {
        const token = await rotateToken(store, id)
        if (!token) throw unknownDevice()
        await auth.checkStreams()
        log.info('a device has a new token', { device: id })
        return { device_id: id, token, message: 'Send Authorization: Bearer <token> with this token from now on' }
      },
    }),
  ]
}
