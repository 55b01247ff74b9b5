/** A QR code as a picture, from its rows. Scanners want dark on light, in both themes. */
export const QrCode = ({ rows }: { readonly rows: readonly string[] }) => (
  <svg class="qr" viewBox={`-2 -2 ${rows.length + 4} ${rows.length + 4}`} role="img" aria-label="QR code">
    <rect x="-2" y="-2" width={rows.length + 4} height={rows.length + 4} fill="#fff" />
    <path
      fill="#000"
      shapeRendering="crispEdges"
      d={rows.map((row, y) => [...row].map((module, x) => (module === '1' ? `M${x} ${y}h1v1h-1z` : '')).join('')).join('')}
    />
  </svg>
)
