/** The names of devices for people, in place of the ids that records keep. */

import { oneLine } from './printable.ts'
import { visibleText } from './untrusted.ts'

const NAME_CHARS_MAX = 100
const DEVICE = /\bdevice:([A-Za-z0-9-]{1,64})/g

/** The person who pairs a device chooses its name: the quotes keep it apart from names of channels and commands. */
const quoted = (name: string): string => `"${oneLine(visibleText(name), NAME_CHARS_MAX).replaceAll('"', "'")}"`

/**
 * Replaces each `device:<id>` of a text by `device "<name>"`. The id of a device that `nameOf` does not know stays. For texts of the
 * gateway only, such as the actor of a record.
 */
export const withDeviceNames = (text: string, nameOf: (id: string) => string | undefined): string =>
  text.replace(DEVICE, (written, id: string) => {
    const name = nameOf(id)
    return name === undefined ? written : `device ${quoted(name)}`
  })

/** Returns an actor, such as `device:<id>` or `telegram:<sender>`, as people read it. */
export async function actorName(
  by: string,
  devices: { find(id: string): Promise<{ readonly name: string } | undefined> },
): Promise<string> {
  const [, id] = /^device:(.+)$/s.exec(by) ?? []
  const device = id === undefined ? undefined : await devices.find(id)
  return device ? `device ${quoted(device.name)}` : by
}
