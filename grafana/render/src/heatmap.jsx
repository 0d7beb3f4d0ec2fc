// Grafana's heatmap panel is not in the packages: this draws the buckets of a classic histogram over time. Simpler than the real one.
import { FieldType, formattedValueToString, getValueFormat } from '@grafana/data';
import { useTheme2 } from '@grafana/ui';

const AXIS = 62;
const FOOT = 18;
const ORANGE = [255, 152, 48];

export const heatmapOptionDefaults = {
  calculate: false,
  cellGap: 1,
  color: { mode: 'scheme', scheme: 'Oranges', steps: 64, fill: 'dark-orange' },
  filterValues: { le: 1e-9 },
  yAxis: { unit: 'short', axisPlacement: 'left', reverse: false },
  legend: { show: true },
  tooltip: { mode: 'single', yHistogram: false },
};

// The buckets from the lowest to the highest that has a count: [upper bound, counts], and the times.
function pick(frame) {
  const time = frame?.fields.find((f) => f.type === FieldType.time);
  const buckets = (frame?.fields ?? []).filter((f) => f.type === FieldType.number).map((f) => [f.name, Array.from(f.values)]);
  const filled = buckets.map(([, counts]) => counts.some((v) => v > 0));
  const first = filled.indexOf(true);
  return time && first >= 0 ? { times: Array.from(time.values), buckets: buckets.slice(first, filled.lastIndexOf(true) + 1) } : undefined;
}

const clock = (ms) => new Date(ms).toISOString().slice(11, 19);

export function Heatmap({ data, options, width, height, fieldConfig }) {
  const theme = useTheme2();
  const picked = pick(data.series[0]);
  if (!picked) {
    return <div data-kit-no-data>{fieldConfig.defaults.noValue ?? 'No data to draw: a heatmap wants counts by le'}</div>;
  }
  const { times, buckets } = picked;
  const unit = getValueFormat(options.yAxis?.unit ?? 'short');
  const label = (bound) => (bound === '+Inf' ? '+Inf' : formattedValueToString(unit(Number(bound))));
  const most = Math.max(...buckets.flatMap(([, counts]) => counts));
  const across = (width - AXIS) / times.length;
  const up = (height - FOOT) / buckets.length;
  const gap = Math.min(options.cellGap ?? 1, across / 4, up / 4);
  const every = Math.max(1, Math.ceil(90 / across));
  const style = { fill: theme.colors.text.primary, fontSize: 11, fontFamily: theme.typography.fontFamily };
  return (
    <svg width={width} height={height}>
      {buckets.flatMap(([bound, counts], row) =>
        counts.map((count, i) =>
          count > 0 ? (
            <rect
              key={`${bound} ${i}`}
              x={AXIS + i * across}
              y={height - FOOT - (row + 1) * up}
              width={across - gap}
              height={up - gap}
              fill={`rgba(${ORANGE},${0.12 + 0.88 * Math.sqrt(count / most)})`}
            />
          ) : null
        )
      )}
      {buckets.map(([bound], row) => (
        <text key={bound} x={AXIS - 6} y={height - FOOT - (row + 0.5) * up} textAnchor="end" dominantBaseline="middle" {...style}>
          {up > 12 || row % 2 === 0 ? label(bound) : ''}
        </text>
      ))}
      {times.map((t, i) =>
        i % every === Math.floor(every / 2) ? (
          <text key={t} x={AXIS + (i + 0.5) * across} y={height - 4} textAnchor="middle" {...style}>
            {clock(t)}
          </text>
        ) : null
      )}
    </svg>
  );
}
