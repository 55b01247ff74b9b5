/** The one door to koffi: what of the C library and of the event loop Node itself does not offer. */

import { installPackage, missingPackages } from '@sluice/kit'
import { AppError } from '@sluice/sdk'

export interface Native {
  /** As in ioctl(2): what the kernel answers, or its error as a negative number. `data` is read and written. */
  ioctl(fd: number, request: number, data: Uint8Array): number
  /** Of handles a request made: a worker thread of Node's takes those it does not know for a mistake. */
  close(fd: number): void
  /**
   * Calls back on the event loop while there is something to read, or the device is gone, and at most once after it is
   * closed. Reading does not wait from now on.
   */
  watch(fd: number, onReadable: (isGone: boolean) => void): { close(): void }
}

/** Its declaration lacks the status, which is negative once the kernel reports an error. */
type Poll = (
  fd: number,
  events: typeof WATCHED,
  onEvent: (status: number, events: { readonly disconnect: boolean }) => void,
) => { close(): void }

const WATCHED = { readable: true, disconnect: true } as const

export const lacksGpio = (): string | undefined => missingPackages(['koffi'], import.meta.url)

/** Throws `unavailable` where koffi is not installed or has no build for this machine. */
export async function loadNative(): Promise<Native> {
  const { default: koffi } = await import('koffi').catch((cause: unknown) => {
    throw new AppError('unavailable', `GPIO lines need the package koffi; ${installPackage('koffi')}`, { cause })
  })
  const library = koffi.load(null)
  const ioctl = library.func('int ioctl(int fd, unsigned long request, void *data)')
  const close = library.func('int close(int fd)')
  return {
    ioctl(fd, request, data) {
      const result = Number(ioctl(fd, request, data))
      return result === -1 ? -koffi.errno() : result
    },
    close: (fd) => void close(fd),
    // a worker that is terminated while koffi calls back takes the whole process along: be in there as briefly as can be
    watch: (fd, onReadable) =>
      (koffi.node.poll as unknown as Poll)(
        fd,
        WATCHED,
        (status, { disconnect }) => void setImmediate(onReadable, status < 0 || disconnect),
      ),
  }
}
