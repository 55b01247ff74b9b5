import { AppError } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { openError } from './adapter-errors.ts'
import { bulkEndpoints } from './usb-port.ts'

const DEVICE = 'MCP2221 at /dev/hidraw0'
const ACCESS = 'add a rule'

describe('openError', () => {
  test.each<[string, unknown, RegExp]>([
    ['a code', Object.assign(new Error('open'), { code: 'EACCES' }), /^No permission for MCP2221 at \/dev\/hidraw0: add a rule$/],
    ['a sentence', new Error('cannot open: Permission denied'), /^No permission/],
    ['a busy device', new Error('could not claim: Resource busy'), /in use by another program/],
    ['anything else', new Error('no such thing'), /cannot be opened: no such thing/],
  ])('turns %s into a sentence with the cure', (_cause, cause, sentence) => {
    expect(openError(cause, DEVICE, ACCESS)).toMatchObject({ code: 'unavailable', message: expect.stringMatching(sentence) })
  })

  test('returns an AppError unchanged', () => {
    const error = new AppError('not_found', 'none')
    expect(openError(error, DEVICE, ACCESS)).toBe(error)
  })
})

describe('bulkEndpoints', () => {
  const endpoint = (endpointNumber: number, direction: string, type = 'bulk') => ({ endpointNumber, direction, type })

  test('takes the endpoints from the descriptor of the device', () => {
    const interfaces = [
      { interfaceNumber: 0, alternate: { interfaceClass: 3, endpoints: [endpoint(1, 'in'), endpoint(1, 'out')] } },
      {
        interfaceNumber: 1,
        alternate: { interfaceClass: 0xff, endpoints: [endpoint(4, 'in', 'interrupt'), endpoint(5, 'in'), endpoint(6, 'out')] },
      },
    ]
    expect(bulkEndpoints(interfaces)).toEqual({ interfaceNumber: 1, input: 5, output: 6 })
    expect(() => bulkEndpoints(interfaces.slice(0, 1))).toThrow('no pair of bulk endpoints')
  })
})
