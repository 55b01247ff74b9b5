/** The services that the core offers features by name; see `Services` in the sdk. */
import { readTomlFile } from '@sluice/config'
import {
  actionRecord,
  type Backlog,
  type Clock,
  type DeviceRow,
  type PairedDevice,
  type Services,
  type Store,
  type Vitals,
} from '@sluice/sdk'
import type { EventBus } from './events/event-bus.ts'
import { newToken } from './pairing.ts'

export interface CoreServiceOptions {
  readonly store: Store
  readonly bus: EventBus
  readonly clock: Clock
  readonly vitals: () => Vitals
  readonly backlog: () => Promise<Backlog>
}

export function createCoreServices({ store, bus, clock, vitals, backlog }: CoreServiceOptions): Partial<Services> {
  const isPaired = ({ expiresAtMs }: DeviceRow): boolean => expiresAtMs === null || expiresAtMs > clock.nowMs()
  return {
    memory: store.memory,
    ...(store.cluster && { oneTimeKeys: store.cluster.oneTimeKeys }),
    vitals,
    backlog,
    readToml: readTomlFile,
    async audit({ kind = 'device_write', by, detail }) {
      await store.sops.record([actionRecord({ kind, atMs: clock.nowMs(), by, detail })])
    },
    pairing: {
      revokedAmong: (devices) => store.devices.revokedAmong(devices),
      devices: async () => (await store.devices.list()).filter(isPaired).map(pairedDevice),
      async device(id) {
        const found = await store.devices.find(id)
        return found && isPaired(found) ? pairedDevice(found) : undefined
      },
      originOf: async (device) => (await store.devices.find(device))?.issuedBy ?? device,
    },
    async issueToken(requested) {
      const { token, device: deviceId } = await newToken(store, requested, clock)
      bus.emit({ type: 'device_paired', device_id: deviceId, name: requested.name })
      return { token, deviceId }
    },
  }
}

const pairedDevice = ({ id, name, role, issuedBy }: DeviceRow): PairedDevice => ({ id, name, role, origin: issuedBy ?? id })
