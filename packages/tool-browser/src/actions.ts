/** The actions of the tool `browser` and their parameters. */
import { AppError, type Risk, whole } from '@sluice/sdk'
import * as v from 'valibot'

const SELECTOR_CHARS_MAX = 2048
const TEXT_CHARS_MAX = 100_000
const COORDINATE_MAX = 100_000

const bounded = (charsMax: number, description: string) =>
  v.pipe(v.string(), v.minLength(1), v.maxLength(charsMax), v.description(description))
const coordinate = (description: string) => v.pipe(whole(0, COORDINATE_MAX), v.description(description))

const fields = {
  url: bounded(8192, 'open: the complete URL, http or https'),
  selector: bounded(SELECTOR_CHARS_MAX, 'An @ref of the last snapshot, a CSS selector, or text=...'),
  value: v.pipe(v.string(), v.maxLength(TEXT_CHARS_MAX), v.description('fill: the new content of the field; find: the value to look for')),
  text: v.pipe(v.string(), v.maxLength(TEXT_CHARS_MAX), v.description('type, key_type: the text to type; wait: the text to wait for')),
  key: bounded(64, 'press, key_press: a key such as Enter or Control+a'),
  interactive_only: v.pipe(v.boolean(), v.description('snapshot: only elements that can be clicked or filled; default true')),
  compact: v.pipe(v.boolean(), v.description('snapshot: without elements that only contain others; default true')),
  depth: v.pipe(whole(1, 100), v.description('snapshot: maximum depth')),
  path: bounded(1024, 'screenshot: the file in the workspace; default: a new one under screenshots/'),
  full_page: v.pipe(v.boolean(), v.description('screenshot: the full page instead of the visible part; default false')),
  ms: v.pipe(whole(0, 30_000), v.description('wait: milliseconds')),
  direction: v.pipe(v.picklist(['up', 'down', 'left', 'right']), v.description('scroll: the direction')),
  pixels: v.pipe(whole(1, COORDINATE_MAX), v.description('scroll: the distance; default 600')),
  by: v.pipe(v.picklist(['role', 'text', 'label', 'placeholder', 'testid']), v.description('find: how value identifies the element')),
  find_action: v.pipe(v.picklist(['click', 'fill', 'text', 'hover', 'check']), v.description('find: the action on the first match')),
  fill_value: v.pipe(v.string(), v.maxLength(TEXT_CHARS_MAX), v.description('find: the text for find_action fill')),
  x: coordinate('mouse_move, mouse_click: pixels from the left'),
  y: coordinate('mouse_move, mouse_click: pixels from the top'),
  from_x: coordinate('mouse_drag: start'),
  from_y: coordinate('mouse_drag: start'),
  to_x: coordinate('mouse_drag: end'),
  to_y: coordinate('mouse_drag: end'),
  button: v.pipe(v.picklist(['left', 'middle', 'right']), v.description('mouse_click: default left')),
} as const

const { selector } = fields

const act = <const Name extends string, const Entries extends v.ObjectEntries>(name: Name, entries: Entries) =>
  v.object({ action: v.literal(name), ...entries })

const browserAction = v.variant('action', [
  act('open', { url: fields.url }),
  act('snapshot', {
    interactive_only: v.optional(fields.interactive_only, true),
    compact: v.optional(fields.compact, true),
    depth: v.optional(fields.depth),
  }),
  act('click', { selector }),
  act('hover', { selector }),
  act('get_text', { selector }),
  act('is_visible', { selector }),
  act('fill', { selector, value: fields.value }),
  act('type', { selector, text: fields.text }),
  act('get_title', {}),
  act('get_url', {}),
  act('close', {}),
  act('screenshot', { path: v.optional(fields.path), full_page: v.optional(fields.full_page, false) }),
  act('wait', { selector: v.optional(selector), ms: v.optional(fields.ms), text: v.optional(fields.text) }),
  act('press', { key: fields.key }),
  act('scroll', { direction: fields.direction, pixels: v.optional(fields.pixels, 600) }),
  act('find', { by: fields.by, value: fields.value, find_action: fields.find_action, fill_value: v.optional(fields.fill_value) }),
])

const desktopAction = v.variant('action', [
  act('mouse_move', { x: fields.x, y: fields.y }),
  act('mouse_click', { x: fields.x, y: fields.y, button: v.optional(fields.button, 'left') }),
  act('mouse_drag', { from_x: fields.from_x, from_y: fields.from_y, to_x: fields.to_x, to_y: fields.to_y }),
  act('key_type', { text: fields.text }),
  act('key_press', { key: fields.key }),
  act('screen_capture', {}),
])

/** The actions of every backend. */
export type BrowserAction = v.InferOutput<typeof browserAction>
/** The additional actions of `computer_use`. */
export type DesktopAction = v.InferOutput<typeof desktopAction>
export type Action = BrowserAction | DesktopAction
export type ActionName = Action['action']

const namesOf = <Name extends string>(variant: { readonly options: readonly { entries: { action: { literal: Name } } }[] }) =>
  variant.options.map(({ entries }) => entries.action.literal)
export const BROWSER_ACTIONS = namesOf<BrowserAction['action']>(browserAction)
export const DESKTOP_ACTIONS = namesOf<DesktopAction['action']>(desktopAction)
const ALL_ACTIONS: readonly ActionName[] = [...BROWSER_ACTIONS, ...DESKTOP_ACTIONS]

/**
 * The tool's input: one flat object, which models handle better than a union. Every parameter is optional here; `readAction`
 * checks the parameters of the action.
 */
export const actionInput = (offered: readonly ActionName[], backend: string) =>
  v.object({
    action: v.pipe(
      v.picklist(offered, ({ input, received }) => unknownAction(typeof input === 'string' ? input : received, backend)),
      v.description('The action to perform'),
    ),
    ...optionalEach(fields),
  })

type Optional<Entries extends Record<string, v.GenericSchema>> = {
  [Key in keyof Entries]: v.OptionalSchema<Entries[Key], undefined>
}

const optionalEach = <const Entries extends Record<string, v.GenericSchema>>(entries: Entries): Optional<Entries> =>
  Object.fromEntries(Object.entries(entries).map(([name, schema]) => [name, v.optional(schema)])) as Optional<Entries>

export type ActionInput = v.InferOutput<ReturnType<typeof actionInput>>

const unknownAction = (input: string, backend: string): string =>
  (ALL_ACTIONS as readonly string[]).includes(input)
    ? `Action '${input}' is unavailable for backend '${backend}'; only 'computer_use' has it`
    : `Unknown action: ${input.slice(0, 50)}`

/** Returns the action with its own parameters and their defaults. Throws `invalid_request` with the missing parameters. */
export function readAction(input: ActionInput): Action {
  const result = v.safeParse(v.union([browserAction, desktopAction]), input, { abortPipeEarly: true })
  if (result.success) return checked(result.output)
  const variant = (BROWSER_ACTIONS as readonly string[]).includes(input.action) ? browserAction : desktopAction
  const missing = v.safeParse(variant, input).issues?.map((issue) => v.getDotPath(issue)) ?? []
  throw new AppError('invalid_request', `Action '${input.action}' needs ${missing.map((name) => `'${name}'`).join(' and ')}`)
}

function checked(action: Action): Action {
  if (action.action !== 'find') return action
  if (action.find_action === 'fill' && action.fill_value === undefined) {
    throw new AppError('invalid_request', "Action 'find' with find_action 'fill' needs 'fill_value'")
  }
  return action
}

const READ_ACTIONS: readonly ActionName[] = [
  ...(['snapshot', 'get_text', 'is_visible', 'get_title', 'get_url', 'wait', 'scroll', 'close', 'screen_capture'] as const),
]

/** Inspecting the open page is `read`; a screenshot writes a file; all other actions may run scripts of a page. */
export function actionRisk({ action, find_action }: ActionInput): Risk {
  if (READ_ACTIONS.includes(action) || (action === 'find' && find_action === 'text')) return 'read'
  return action === 'screenshot' ? 'write' : 'execute'
}
