/** The names of paired devices, in place of the ids that the API answers, for what a person reads. */
import type { DevicesPage } from '@sluice/http/answers'
import { withDeviceNames } from '@sluice/sdk'
import type { Api } from './api.ts'

/** Resolves to a function that puts names in place of `device:<id>`. Without devices of that kind among `texts`, nothing is asked. */
export async function deviceNames(api: Api, texts: readonly (string | null)[]): Promise<(text: string | null) => string> {
  if (!texts.some((text) => text?.includes('device:'))) return (text) => text ?? ''
  const { devices } = await api.get<DevicesPage>('/api/devices')
  const names = new Map(devices.map(({ id, name }) => [id, name]))
  return (text) => withDeviceNames(text ?? '', (id) => names.get(id))
}
