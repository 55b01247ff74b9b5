/** Replaces the ids of paired devices, which the API answers, by their names in the texts for people. */
import type { DevicesPage } from '@sluice/http/answers'
import { AppError, withDeviceNames } from '@sluice/sdk'
import type { Api } from './api.ts'

/**
 * Resolves to a function that puts names in place of `device:<id>`. Without devices of that kind among `texts`, nothing is asked. The ids
 * stay for a caller who may not read the devices: only operators may.
 */
export async function deviceNames(api: Api, texts: readonly (string | null)[]): Promise<(text: string | null) => string> {
  if (!texts.some((text) => text?.includes('device:'))) return (text) => text ?? ''
  const names = new Map((await readableDevices(api)).map(({ id, name }) => [id, name]))
  return (text) => withDeviceNames(text ?? '', (id) => names.get(id))
}

async function readableDevices(api: Api): Promise<DevicesPage['devices']> {
  try {
    return (await api.get<DevicesPage>('/api/devices')).devices
  } catch (error) {
    if (error instanceof AppError && error.code === 'forbidden') return []
    throw error
  }
}
