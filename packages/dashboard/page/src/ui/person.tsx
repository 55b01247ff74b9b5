/** The name of a person, device or browser, in place of the id that the gateway has for it. The id is its title. */
import { useApi } from '../data/queries.ts'
import { role } from '../data/session.ts'
import { Name } from './text.tsx'

export const THIS_BROWSER = 'this browser'

/** Returns the name of a device by its id, also after `device:`; any other text is returned as it is. */
export function useDeviceNames(): (id: string) => string {
  const devices = useApi('/api/devices', {}, { enabled: role.value === 'operator' })
  const own = useApi('/api/dashboard/session', {})
  return (id) => {
    const device = id.replace(/^device:/, '')
    if (device === own.data?.device) return THIS_BROWSER
    return devices.data?.devices.find((one) => one.id === device)?.name ?? id
  }
}

export function Person({ by }: { readonly by: string }) {
  const name = useDeviceNames()(by)
  return (
    <span title={name === by ? undefined : by}>
      <Name value={name} />
    </span>
  )
}
