/** The icons, as lines on a grid of 20. They repeat a word beside them, so screen readers pass over them. */
const PATHS = {
  overview: 'M3 3h6v8H3zM11 3h6v5h-6zM11 10h6v7h-6zM3 13h6v4H3z',
  chat: 'M3 4h14v10H9l-4 3v-3H3z',
  approvals: 'M4 10l4 4 8-9',
  turns: 'M10 3a7 7 0 1 1-7 7M3 4v4h4M10 6v4l3 2',
  deliveries: 'M3 11v5h14v-5M3 11l3-7h8l3 7h-5a2 2 0 0 1-4 0z',
  procedures: 'M5 3v14M5 5h8l-2 3 2 3H5',
  channels: 'M4 8a8.5 8.5 0 0 1 12 0M6.5 11a5 5 0 0 1 7 0M10 14.5v.01',
  rooms: 'M7 9a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM2 16c0-3 2-5 5-5s5 2 5 5M13 9a2 2 0 1 0 0-4M14 11c2.500 0 4 2 4 4.500',
  people:
    'M6 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM14 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM2 16c0-3 2-5 4-5s4 2 4 5M10 16c0-3 2-5 4-5s4 2 4 5M8.5 6.5h3',
  devices: 'M7 2h6a1 1 0 0 1 1 1v14a1 1 0 0 1-1 1H7a1 1 0 0 1-1-1V3a1 1 0 0 1 1-1zM9.5 15.5h1',
  browser: 'M3 4h14v12H3zM3 8h14M5.5 6v.01M8 6v.01',
  hardware: 'M6 6h8v8H6zM8 3v3M12 3v3M8 14v3M12 14v3M3 8h3M3 12h3M14 8h3M14 12h3',
  tools: 'M12.5 3.5a4 4 0 0 0-4 5.5L3 14.500 5.500 17 11 11.500a4 4 0 0 0 5.500-4L14 10l-3-1-1-3z',
  features: 'M10 2.500l7 3.500-7 3.500L3 6zM3 10l7 3.500L17 10M3 14l7 3.500L17 14',
  config: 'M3 6h7M14 6h3M3 14h3M10 14h7M12 4v4M8 12v4',
  logs: 'M4 4h12M4 8h12M4 12h8M4 16h5',
  menu: 'M3 5h14M3 10h14M3 15h14',
  send: 'M3 10l14-7-5 14-3-5z',
  stop: 'M5 5h10v10H5z',
  clip: 'M14 7l-6 6a1.500 1.500 0 0 0 2 2l6-6a3.500 3.500 0 0 0-5-5L5 10a5 5 0 0 0 7 7',
  plus: 'M10 4v12M4 10h12',
  memory: 'M10 3a7 3 0 0 1 7 2.500v9a7 3 0 0 1-14 0v-9A7 3 0 0 1 10 3zM3 5.500a7 3 0 0 0 14 0M3 10a7 3 0 0 0 14 0',
} as const

export type IconName = keyof typeof PATHS

export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg
    width="18"
    height="18"
    viewBox="0 0 20 20"
    fill="none"
    stroke="currentColor"
    stroke-width="1.5"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d={PATHS[name]} />
  </svg>
)

export const Mark = () => (
  <svg viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" fill="#0f766e" />
    <path
      d="M8 11c4-3 12 3 16 0M8 16c4-3 12 3 16 0M8 21c4-3 12 3 16 0"
      fill="none"
      stroke="#fff"
      stroke-width="2.4"
      stroke-linecap="round"
    />
  </svg>
)
