/** Installs libusb, which node-hid needs on Linux, in a virtual machine. */
import { constants } from 'node:fs'
import { copyFile, glob } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cacheFolder, releaseName, unpackPackages } from '@sluice/qa/debian-packages'
import { onceAndWhole } from '@sluice/qa/once-and-whole'

const PACKAGE = 'libusb-1.0-0'
const LIBRARIES = '/usr/lib/x86_64-linux-gnu'

const folder = async (): Promise<string> => cacheFolder('dev/debian', `${PACKAGE}-${await releaseName()}`)

/** Downloads the library on the host before the machine boots. Returns why it is not available; undefined when it is. */
export async function missingLibusb(): Promise<string | undefined> {
  try {
    await onceAndWhole(await folder(), (draft) => unpackPackages(draft, [PACKAGE]))
    return undefined
  } catch (error) {
    return `Debian's ${PACKAGE} is not available: ${(error as Error).message.trim().split('\n').at(-1)}`
  }
}

/** Copies the library in the guest. An existing copy stays, because it may be in use. */
export async function installLibusb(): Promise<void> {
  for await (const file of glob('**/libusb-1.0.so.0', { cwd: await folder() }))
    await copyFile(join(await folder(), file), join(LIBRARIES, basename(file)), constants.COPYFILE_EXCL).catch(ignoreExisting)
}

const ignoreExisting = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'EEXIST') throw error
}
