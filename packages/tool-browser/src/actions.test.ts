import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { actionInput, actionRisk, BROWSER_ACTIONS, DESKTOP_ACTIONS, readAction } from './actions.ts'

const input = actionInput(BROWSER_ACTIONS, 'native')
const all = actionInput([...BROWSER_ACTIONS, ...DESKTOP_ACTIONS], 'computer_use')
const messages = (given: object) => v.safeParse(input, given).issues?.map(({ message }) => message)

describe('browser actions', () => {
  test('distinguishes an action of another backend from an unknown action', () => {
    expect(messages({ action: 'mouse_move', x: 1, y: 1 })).toEqual([
      "Action 'mouse_move' is unavailable for backend 'native'; only 'computer_use' has it",
    ])
    expect(messages({ action: 'fly' })).toEqual(['Unknown action: fly'])
    // JSON can hold an object that has no text.
    expect(messages({ action: { toString: '', valueOf: '' } })).toEqual(['Unknown action: Object'])
    expect(messages({ action: null })).toEqual(['Unknown action: null'])
  })

  test.each<[given: object, message: string]>([
    [{ action: 'open' }, "Action 'open' needs 'url'"],
    [{ action: 'click' }, "Action 'click' needs 'selector'"],
    [{ action: 'fill' }, "Action 'fill' needs 'selector' and 'value'"],
    [{ action: 'press' }, "Action 'press' needs 'key'"],
    [{ action: 'scroll' }, "Action 'scroll' needs 'direction'"],
    [{ action: 'find', by: 'text', value: 'x' }, "Action 'find' needs 'find_action'"],
    [{ action: 'find', by: 'text', value: 'x', find_action: 'fill' }, "Action 'find' with find_action 'fill' needs 'fill_value'"],
    [{ action: 'mouse_drag', from_x: 1 }, "Action 'mouse_drag' needs 'from_y' and 'to_x' and 'to_y'"],
  ])('names the missing parameters of %j', (given, message) => {
    expect(() => readAction(v.parse(all, given))).toThrow(expect.objectContaining({ code: 'invalid_request', message }))
  })

  test('drops parameters of other actions and fills in defaults', () => {
    expect(readAction(v.parse(all, { action: 'snapshot', url: 'x' }))).toEqual({
      action: 'snapshot',
      interactive_only: true,
      compact: true,
    })
    expect(readAction(v.parse(all, { action: 'scroll', direction: 'up' }))).toEqual({ action: 'scroll', direction: 'up', pixels: 600 })
  })

  test('rates inspection as read, a screenshot as write and the rest as execute', () => {
    const risks = Object.groupBy([...BROWSER_ACTIONS, ...DESKTOP_ACTIONS], (action) => actionRisk({ action }))
    expect(risks.read).toEqual(['snapshot', 'get_text', 'is_visible', 'get_title', 'get_url', 'close', 'wait', 'scroll', 'screen_capture'])
    expect(risks.write).toEqual(['screenshot'])
    expect(actionRisk({ action: 'find', find_action: 'text' })).toBe('read')
    expect(actionRisk({ action: 'find', find_action: 'click' })).toBe('execute')
  })
})
