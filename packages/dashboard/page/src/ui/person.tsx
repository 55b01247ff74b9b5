/** The name of a person, device or browser, in place of the id that the gateway has for it. The id is its title. */
import { useApi } from '../data/queries.ts'
import { role } from '../data/session.ts'
import { Name } from './text.tsx'

export const THIS_BROWSER = 'this browser'

const DEVICE = /\bdevice:([\w-]+)/g

/**
 * Returns the name of a device by its id, also after `device:`. In any other text of the gateway, such as a reason, each `device:<id>`
 * becomes the name in quotes.
 */
export function useDeviceNames(): (id: string) => string {
  const devices = useApi('/api/devices', {}, { enabled: role.value === 'operator' })
  const own = useApi('/api/dashboard/session', {})
  return (id) => {
    const nameOf = (device: string) =>
      device === own.data?.device ? THIS_BROWSER : devices.data?.devices.find((one) => one.id === device)?.name
    const quoted = (name: string) => (name === THIS_BROWSER ? name : `device "${name}"`)
    const named = (written: string, device: string) => {
      const name = nameOf(device)
      return name === undefined ? written : quoted(name)
    }
    return nameOf(id.replace(/^device:/, '')) ?? id.replace(DEVICE, named)
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
