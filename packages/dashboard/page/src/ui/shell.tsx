/**
 * The frame around every place: the menu and the bar of narrow windows. It is pure, because the build writes it into the page as HTML:
 * the menu is drawn, and its links work, before a script has run.
 */
import type { ComponentChildren } from 'preact'
import { Icon, type IconName, Mark } from './icon.tsx'

interface Place {
  readonly path: string
  readonly name: string
  readonly icon: IconName
  /** Whether a client may see it; any other place is for operators. */
  readonly forClients?: true
  /** Whether only a daemon in a cluster has it. */
  readonly inCluster?: true
}

const PLACES: readonly (readonly [group: string, places: readonly Place[]])[] = [
  [
    'Work',
    [
      { path: '/', name: 'Overview', icon: 'overview' },
      { path: '/chat', name: 'Chat', icon: 'chat', forClients: true },
      { path: '/conversations', name: 'Conversations', icon: 'memory' },
      { path: '/approvals', name: 'Approvals', icon: 'approvals', forClients: true },
      { path: '/turns', name: 'Turns', icon: 'turns' },
      { path: '/deliveries', name: 'Deliveries', icon: 'deliveries' },
      { path: '/procedures', name: 'Procedures', icon: 'procedures' },
    ],
  ],
  [
    'Connections',
    [
      { path: '/channels', name: 'Channels', icon: 'channels' },
      { path: '/rooms', name: 'Rooms', icon: 'rooms' },
      { path: '/people', name: 'People', icon: 'people' },
      { path: '/devices', name: 'Devices', icon: 'devices' },
      { path: '/browser', name: 'This browser', icon: 'browser', forClients: true },
      { path: '/hardware', name: 'Hardware', icon: 'hardware' },
      { path: '/tools', name: 'Tools and skills', icon: 'tools' },
    ],
  ],
  [
    'System',
    [
      { path: '/features', name: 'Features', icon: 'features' },
      { path: '/configuration', name: 'Configuration', icon: 'config' },
      { path: '/logs', name: 'Logs and events', icon: 'logs' },
      { path: '/nodes', name: 'Nodes', icon: 'channels', inCluster: true },
    ],
  ],
]

/** The places of the menu for a role; only a daemon in a cluster has all of them. */
export const placesFor = (isOperator: boolean, isCluster: boolean): typeof PLACES =>
  PLACES.map(([group, all]) => [group, all.filter(({ forClients, inCluster }) => (forClients || isOperator) && (!inCluster || isCluster))])

interface ShellProps {
  readonly isOperator: boolean
  readonly isCluster?: boolean
  /** The place that is shown; undefined before the page knows. */
  readonly place?: string
  /** How much waits at a place. */
  readonly counts?: Readonly<Record<string, number>>
  readonly isMenuOpen?: boolean
  readonly setMenuOpen?: (isOpen: boolean) => void
  /** The state of the connection. */
  readonly state?: ComponentChildren
  readonly notice?: ComponentChildren
  /** The end of the menu. */
  readonly foot?: ComponentChildren
  readonly children?: ComponentChildren
}

export function Shell({
  isOperator,
  isCluster = false,
  place,
  counts = {},
  isMenuOpen = false,
  setMenuOpen,
  state,
  notice,
  foot,
  children,
}: ShellProps) {
  const isHere = (path: string) => place !== undefined && (place === path || (path !== '/' && place.startsWith(`${path}/`)))
  return (
    <div class={`shell ${isMenuOpen ? 'menu-open' : ''}`}>
      {setMenuOpen && (
        <a
          class="skip"
          href="#main"
          onClick={(event) => {
            event.preventDefault()
            document.querySelector<HTMLElement>('main h1')?.focus()
          }}
        >
          Skip to the content
        </a>
      )}
      <div class="top">
        <header class="bar">
          <button type="button" class="plain icon" aria-label="Menu" aria-expanded={isMenuOpen} onClick={() => setMenuOpen?.(!isMenuOpen)}>
            <Icon name="menu" />
          </button>
          <span class="brand grow">Sluice</span>
          {state}
        </header>
        {notice}
      </div>
      {isMenuOpen && <button type="button" class="scrim" aria-label="Close the menu" onClick={() => setMenuOpen?.(false)} />}
      <div class="side">
        <a class="brand" href="#/">
          <Mark /> Sluice
        </a>
        <nav aria-label="Pages">
          {placesFor(isOperator, isCluster).map(([group, places]) => (
            <div key={group} hidden={places.length === 0}>
              <h2>{group}</h2>
              <ul>
                {places.map(({ path, name, icon }) => (
                  <li key={path}>
                    <a href={`#${path}`} aria-current={isHere(path) ? 'page' : undefined} onClick={() => setMenuOpen?.(false)}>
                      <Icon name={icon} />
                      {name}
                      {counts[path] ? (
                        <span class="count">
                          {counts[path]}
                          <span class="hidden-text"> waiting</span>
                        </span>
                      ) : null}
                    </a>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </nav>
        {foot}
      </div>
      <main id="main">{children}</main>
    </div>
  )
}
