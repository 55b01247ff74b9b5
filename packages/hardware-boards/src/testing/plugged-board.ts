/** A fake board at the far end of a real USB line, in a virtual machine. */
import { openTerminal } from '@sluice/qa/vm/devices/terminal'
import { createUsbBoard, type UsbBoard, type UsbBoardIdentity } from '@sluice/qa/vm/devices/usb-board'
import type { Port } from '../devices.ts'
import { type FakeBoard, type FakeBoardOptions, fakeBoard } from './fake-board.ts'

export interface PluggedBoard {
  readonly usb: UsbBoard
  /** The firmware that runs on the board. */
  readonly firmware: FakeBoard
  /** Idempotent. */
  close(): Promise<void>
}

/** Returns a board that is not plugged in yet, but whose firmware already runs. */
export async function boardWithFirmware(identity: UsbBoardIdentity, options?: FakeBoardOptions): Promise<PluggedBoard> {
  const usb = await createUsbBoard(identity)
  const readers = new Set<(bytes: Uint8Array) => void>()
  const terminal = await openTerminal(usb.boardEnd, (bytes) => {
    for (const reader of readers) reader(bytes)
  })
  const port: Port = {
    write: (bytes) => terminal.write(bytes),
    onData(callback) {
      readers.add(callback)
      return () => void readers.delete(callback)
    },
    onClose: () => () => undefined,
    signals: async () => undefined,
    close: () => terminal.close(),
  }
  return { usb, firmware: fakeBoard(port, options), close: () => terminal.close() }
}
