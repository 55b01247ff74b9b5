/** The library node-hid needs on Linux, for machines that lack it. */
import { constants } from 'node:fs'
import { copyFile, glob } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cacheFolder, releaseName, unpackPackages } from '@sluice/qa/debian-packages'
import { onceAndWhole } from '@sluice/qa/once-and-whole'

const PACKAGE = 'libusb-1.0-0'
const LIBRARIES = '/usr/lib/x86_64-linux-gnu'

const folder = async (): Promise<string> => cacheFolder('dev/debian', `${PACKAGE}-${await releaseName()}`)

/** On the host, before the machine boots. Why it cannot be had; undefined: it can. */
export async function lacksLibusb(): Promise<string | undefined> {
  try {
    await onceAndWhole(await folder(), (draft) => unpackPackages(draft, [PACKAGE]))
    return undefined
  } catch (error) {
    return `Debian's ${PACKAGE} cannot be had: ${(error as Error).message.trim().split('\n').at(-1)}`
  }
}

/** In the guest, whose files nobody keeps; once, since a library in use must stay as it is. */
export async function installLibusb(): Promise<void> {
  for await (const file of glob('**/libusb-1.0.so.0', { cwd: await folder() }))
    await copyFile(join(await folder(), file), join(LIBRARIES, basename(file)), constants.COPYFILE_EXCL).catch(unlessThere)
}

const unlessThere = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'EEXIST') throw error
}
