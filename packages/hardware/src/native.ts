/** Loads koffi, the optional package that provides the system calls and the polling that Node does not offer. */

import { installPackage, missingPackages } from '@sluice/kit'
import { AppError } from '@sluice/sdk'

export interface Native {
  /** Calls ioctl(2). Returns the kernel's result, or its error number negated. Reads and writes `data`. */
  ioctl(fd: number, request: number, data: Uint8Array): number
  /** Closes a descriptor that an ioctl returned. In a worker thread Node's own close rejects descriptors that it did not open. */
  close(fd: number): void
  /**
   * Calls `onReadable` on the event loop whenever there is something to read or the device is gone, and at most once more after
   * the watch is closed. Switches the descriptor to non-blocking reads.
   */
  watch(fd: number, onReadable: (isGone: boolean) => void): { close(): void }
}

/** The type of koffi's `poll`, whose published types omit the status. The status is negative once the kernel reports an error. */
type Poll = (
  fd: number,
  events: typeof WATCHED,
  onEvent: (status: number, events: { readonly disconnect: boolean }) => void,
) => { close(): void }

const WATCHED = { readable: true, disconnect: true } as const

/** Returns why GPIO cannot be used because koffi is not installed; undefined when it is. */
export const missingGpioPackage = (): string | undefined => missingPackages(['koffi'], import.meta.url)

/** Throws `unavailable` when koffi is not installed or has no build for this machine. */
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
    // Terminating a worker thread while koffi runs a callback ends the whole process, so the callback only schedules the work.
    watch: (fd, onReadable) =>
      (koffi.node.poll as unknown as Poll)(
        fd,
        WATCHED,
        (status, { disconnect }) => void setImmediate(onReadable, status < 0 || disconnect),
      ),
  }
}
