import { systemClock } from '@sluice/kit'
import { describe, expect, test } from 'vitest'
import type { NativePort } from '../native.ts'
import { openSerialPort } from './serial-port.ts'

const never = new AbortController().signal

describe('openSerialPort', () => {
  test('closes a port that opens after the call was aborted', async () => {
    const opening = Promise.withResolvers<(error: Error | null) => void>()
    const closed = Promise.withResolvers<void>()
    const native: NativePort = {
      open: (callback) => opening.resolve(callback),
      close: (callback) => {
        closed.resolve()
        callback(null)
      },
      write: () => true,
      set: (_lines, callback) => callback(null),
      destroy: () => undefined,
      isOpen: true,
      on: () => native,
    }
    const abort = new AbortController()
    const load = async () => ({ list: async () => [], port: () => native })
    const port = openSerialPort('/dev/ttyACM0', 9600, systemClock, abort.signal, load)
    const open = await opening.promise
    abort.abort()
    await expect(port).rejects.toMatchObject({ code: 'aborted' })
    open(null)
    await closed.promise
  })

  test('reports a port that does not exist', async () => {
    await expect(openSerialPort('/dev/ttyACM999', 9600, systemClock, never)).rejects.toThrow('There is no /dev/ttyACM999')
  })

  test('says what to install when the native module is missing', async () => {
    const load = async () => {
      const { loadSerialLibrary } = await import('../native.ts')
      return loadSerialLibrary(() => Promise.reject(new Error("Cannot find package 'serialport'")))
    }
    await expect(openSerialPort('/dev/ttyACM0', 9600, systemClock, never, load)).rejects.toThrow('sluice native install serialport')
  })
})
