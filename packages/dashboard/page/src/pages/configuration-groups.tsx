/** The settings by what a person wants to do: the tasks with their sections, and what a search has found. */
import { GUIDES } from 'virtual:channel-guides'
import { to } from '../data/router.ts'
import { type Section, type Setting, settingsOf, type Task, wordsOf } from '../data/settings.ts'
import { Badge, Card, Empty } from '../ui/parts.tsx'

/** What the page knows of each section. */
export interface View {
  readonly tasks: readonly Task[]
  readonly sections: readonly Section[]
  readonly query: string
  readonly isFound: (section: Section, setting: Setting) => boolean
  readonly differs: (setting: Setting) => boolean
  /** Whether a person has typed a value that is not saved. */
  readonly isTyped: (setting: Setting) => boolean
}

/** The places that set the same things up, by task. */
const PLACES: Readonly<Record<string, readonly (readonly [href: string, name: string])[]>> = {
  models: [['#/setup', 'Set up a provider step by step']],
  agents: [['#/tools', 'See tools and skills']],
  platforms: [
    ['#/channels', 'Set up a channel step by step'],
    ['#/rooms', 'Set the rules of rooms'],
  ],
  safety: [
    ['#/approvals', 'See what waits for approval'],
    ['#/browser', 'Turn on notifications here'],
  ],
  people: [
    ['#/devices', 'Let people and devices in'],
    ['#/people', 'See linked accounts'],
  ],
  procedures: [['#/procedures', 'See the procedures']],
  observability: [['#/logs/lines', 'See the log']],
  hardware: [['#/hardware', 'See the hardware']],
}

const guideOf = (path: string): string | undefined =>
  Object.entries(GUIDES).find(([, ways]) => ways?.some(({ section }) => section === path))?.[0]

/** Links to the places that set the section up in another way. */
export function OtherPlaces({ task, path }: { readonly task: string; readonly path?: string }) {
  const guide = path && guideOf(path)
  const places = guide
    ? [[to('channels', guide.replace(/^channel-/, ''), 'set-up'), 'Set it up step by step'] as const]
    : path?.startsWith('channels_config.')
      ? []
      : (PLACES[task] ?? [])
  if (places.length === 0) return null
  return (
    <div class="row">
      {places.map(([href, name]) => (
        <a key={href} class="button" href={href}>
          {name}
        </a>
      ))}
    </div>
  )
}

const sectionAddress = (path: string, query: string): string =>
  `#/configuration?${new URLSearchParams({ section: path, ...(query && { find: query }) })}`

/** The groups that have sections of this build and, during a search, settings that were found. */
const groupsOf = ({ tasks, sections, query, isFound }: View) =>
  tasks.flatMap((task) => {
    const own = sections
      .filter((section) => section.task === task.id)
      .map((section) => ({ section, found: query === '' ? [] : settingsOf(section).filter((setting) => isFound(section, setting)) }))
      .filter(({ found }) => query === '' || found.length > 0)
    return own.length > 0 ? [{ task, own }] : []
  })

const FOUND_MAX = 5

/** All groups as cards. */
export function Groups(view: View) {
  const groups = groupsOf(view)
  if (groups.length === 0) return <Empty>No setting has these words in its key, its description or its value.</Empty>
  return (
    <div class="groups">
      {groups.map(({ task, own }) => (
        <Card key={task.id} title={task.title} padded>
          <div class="stack">
            <p class="quiet">{task.about}</p>
            <ul class="sections">
              {own.map(({ section, found }) => (
                <li key={section.path}>
                  <SectionLink view={view} section={section} />
                  {found.length > 0 && (
                    <ul class="found">
                      {found.slice(0, FOUND_MAX).map(({ key, name }) => (
                        <li key={key}>
                          {wordsOf(name)} <code>{key}</code>
                        </li>
                      ))}
                      {found.length > FOUND_MAX && <li>and {found.length - FOUND_MAX} more</li>}
                    </ul>
                  )}
                </li>
              ))}
            </ul>
            <OtherPlaces task={task.id} />
          </div>
        </Card>
      ))}
    </div>
  )
}

interface LinkProps {
  readonly view: View
  readonly section: Section
  readonly isCurrent?: boolean
}

/** A section in words, with how much of it was changed. */
function SectionLink({ view, section, isCurrent = false }: LinkProps) {
  const settings = settingsOf(section)
  const changed = settings.filter(view.differs).length
  return (
    <a href={sectionAddress(section.path, view.query)} aria-current={isCurrent ? 'true' : undefined}>
      <span>{section.title}</span>{' '}
      {settings.some(view.isTyped) ? (
        <Badge state="not saved" tone="warn" />
      ) : (
        changed > 0 && <Badge state={`${changed} changed`} tone="info" />
      )}
    </a>
  )
}

/** The sections beside the form of one: those of its group or, during a search, all that were found. */
export function SectionList({ view, current }: { readonly view: View; readonly current: Section }) {
  const groups = groupsOf(view).filter(({ task }) => view.query !== '' || task.id === current.task)
  return (
    <nav class="names" aria-label="Sections">
      {groups.map(({ task, own }) => (
        <div key={task.id}>
          <h3>{task.title}</h3>
          <ul>
            {own.map(({ section }) => (
              <li key={section.path}>
                <SectionLink view={view} section={section} isCurrent={section.path === current.path} />
              </li>
            ))}
          </ul>
        </div>
      ))}
      {groups.length === 0 && <p class="quiet">No setting was found.</p>}
    </nav>
  )
}
