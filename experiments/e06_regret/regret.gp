# regret.gp - regret of the chooser, sorted; called by run.sh
set terminal pngcairo size 800, 480 font "sans,11" background "white"
set output output
set xlabel "points of the grid, %"
set ylabel "time of the chosen plan beyond the best, %"
set title "Regret of the chooser, simulated message by message" font ",14"
set xrange [0:100]
set yrange [0:11]
set grid ytics lt 1 lc rgb "#dddddd"
set border 3
set tics nomirror
set key left top
plot data using (100.0 * ($0 + 1) / n):1 with lines lw 2 lc rgb "#1b5e9e" title sprintf("%d points, sorted", n), \
     2 with lines dt 2 lc rgb "#d95f02" title "goal at the median, 2 %", \
     10 with lines dt 3 lc rgb "#d95f02" title "goal everywhere, 10 %"
